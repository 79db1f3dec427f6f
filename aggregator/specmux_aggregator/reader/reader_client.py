"""The service's side of the reader: gives it documents, asks it questions, turns its failures into answers.

A job that wants a document is given it and asked again. Jobs about all documents follow the Snapshot: those
that changed are handed over first, a few at a time, and what could not be had in time is named in the answer.
"""

# Theory of operation
#
# The reader is a process that holds an index of documents; this module decides what it is given. A job
# names what it lacks by returning ``Wants``: one document, or None for the whole list of what is
# published. It is given that and asked again, a bounded number of times, since a document may be replaced
# in between. So the reader may forget, die or be killed for memory at any time; the next job finds out.
#
# Jobs about all documents need the index of the current version. ``_align`` starts one task for each
# version, which tells the reader the hashes, learns which are missing, and hands these over: few at a
# time, fewer of one backend, none of them kept here in plain form. A request waits a short time for it
# and is then answered with what is there; the answer names what is missing.
#
# A document beyond its share of the reader is refused alone, remembered by its hash, named in
# ``/status``, and not handed over again, also not to the process that follows.
#
# Questions about documents of one backend take turns (``Turns``), so those that are costly delay no other
# backend's.
#
# What must never happen: an answer about one version that says it is about another; a document that is
# asked of its backend twice for one question; a failure of the reader that costs more than the question.

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Concatenate, Final, ParamSpec, TypeAlias, TypeVar

from specmux_aggregator.auth.fair_queue import TooManyWait, Turns
from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Provenance
from specmux_aggregator.model.snapshot import Snapshot, SnapshotEntry
from specmux_aggregator.mounts import READER, NamedFunction
from specmux_aggregator.reader.process import (
    MOST_IN_FLIGHT,
    REQUEST_SECONDS,
    Reader,
    ReaderBusy,
    ReaderFailed,
    ReaderFault,
    Unready,
)
from specmux_aggregator.reader.requests import (
    WHOLE_SHARE,
    DocumentShare,
    QuestionRefusal,
    ReaderAnswer,
    State,
    Wants,
)
from specmux_aggregator.tasks import log_failure
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.media_types import JSON

logger = logging.getLogger(__name__)

_Hashes: TypeAlias = dict[GroupVersion, str]
_ALIGN: Final[NamedFunction[[State, str, _Hashes], tuple[GroupVersion, ...]]] = NamedFunction(READER["align"])
_FOLLOW: Final[NamedFunction[[State, str, _Hashes], None]] = NamedFunction(READER["follow"])
_ADD: Final[NamedFunction[[State, GroupVersion, str, bytes, DocumentShare], str | None]] = NamedFunction(
    READER["add"]
)
_KEEP: Final[NamedFunction[[State, str, bytes, DocumentShare], str | None]] = NamedFunction(READER["keep"])

P = ParamSpec("P")
R = TypeVar("R")

JobOfAll: TypeAlias = Callable[[State, str, tuple[str, ...]], ReaderAnswer | QuestionRefusal | Wants]

ALIGN_SECONDS: Final = 3.0
"""For which a request waits for documents that are not in the index yet."""
PAGE_SECONDS: Final = 0.1  # for pages, which name the rest
_LOOKS_AGAIN: Final = 0.1
PER_BACKEND: Final = 2
HANDED_AT_ONCE: Final = 4
"""Documents on their way to the process at one time, whoever owns them."""

_ATTEMPTS: Final = 3
_ATTEMPTS_TO_FIND: Final = 6
"""The first two tell the reader what is published and hand it the document; while a service starts, what is
published changes in between."""


class Reading:
    """The reader with the documents at hand. One for all endpoints of an App."""

    def __init__(
        self,
        reader: Reader,
        documents: DocumentRepository,
        snapshot: Callable[[], Snapshot],
        share: DocumentShare = WHOLE_SHARE,
    ) -> None:
        self._reader = reader
        self._documents = documents
        self._snapshot = snapshot
        self._share = share
        self._refused: dict[GroupVersion, tuple[str, str]] = {}
        """Hash of documents that cannot be read within their share, and why. They are not handed over again,
        also not to the process that follows."""
        self._turns = Turns(MOST_IN_FLIGHT, of_one=PER_BACKEND, waiting_of_one=MOST_IN_FLIGHT)
        self._aligning: tuple[str, asyncio.Task[Unready | None]] | None = None
        self._aligned = ""
        self._missing: dict[GroupVersion, str] = {}
        """Documents of the followed Snapshot that are not in the index, and why."""

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot()

    async def of_document(
        self,
        entry: SnapshotEntry,
        job: Callable[Concatenate[State, P], ReaderAnswer | QuestionRefusal | Wants],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> ReaderAnswer | QuestionRefusal:
        """The result of a job about one document. Raises Unready."""
        async with self._turn_of(entry.owner):
            for _ in range(_ATTEMPTS):
                found = await self.of_state(job, *args, **kwargs)
                if not isinstance(found, Wants):
                    return found
                await self._hand(entry)
            raise Unready(503, "more documents are asked for than the reader can hold")

    @property
    def refused(self) -> dict[GroupVersion, str]:
        """Published documents that are not read, and why."""
        entries = self._snapshot().entries
        return {
            key: reason
            for key, (hash, reason) in sorted(self._refused.items())
            if key in entries and str(entries[key].key.hash) == hash
        }

    @property
    def _incomplete(self) -> tuple[str, ...]:
        return tuple(sorted({*self._missing, *self.refused}))

    @contextlib.asynccontextmanager
    async def _turn_of(self, owner: BackendName) -> AsyncIterator[None]:
        """Few questions about documents of one backend at a time, so that costly ones delay those about
        others by no more. Raises Unready."""
        address = owner.encode()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await self._turns.take(address)
        except TooManyWait:
            raise Unready(429, "too many requests wait for documents of this backend") from None
        except TimeoutError:
            raise Unready(503, "the question did not get its turn in time; try again") from None
        try:
            yield
        finally:
            self._turns.give_back(address)

    async def warm_up(
        self, job: JobOfAll, *, first: Callable[[State], None], is_known: Callable[[], bool]
    ) -> None:
        """Do the ``first`` job while backends are asked, that about all documents once they are known. It
        asks no backend for a document: natives that are not at hand stay missing."""
        await self._reader.start()
        with contextlib.suppress(Unready):
            await self.of_state(first)
        while not is_known():
            await asyncio.sleep(_LOOKS_AGAIN)
        for _ in range(_ATTEMPTS):
            if self._aligning is not None and not self._aligning[1].done():
                return  # somebody came first
            version = self.version
            task = self._start_following(version, fetches=False)
            self._aligning = version, task
            await asyncio.wait((task,))
            if task.cancelled() or task.exception() is not None or task.result() is not None:
                continue  # on a machine that is busy the process takes longer to start than a request waits
            with contextlib.suppress(Unready):
                await self.of_state(job, version, self._incomplete)
                if version == self.version:
                    return

    async def of_all(
        self, job: JobOfAll, *, seconds: float = ALIGN_SECONDS
    ) -> ReaderAnswer | QuestionRefusal:
        """The result of a job about all documents: it is told the version it is for, and what is missing
        after so many seconds. Raises Unready."""
        return await self.of_both((), job, seconds=seconds)

    async def of_both(
        self, entries: Sequence[SnapshotEntry], job: JobOfAll, *, seconds: float = ALIGN_SECONDS
    ) -> ReaderAnswer | QuestionRefusal:
        """The same for a job that wants some documents as well. Raises Unready."""
        if entries:
            async with self._turn_of(entries[0].owner):
                return await self._of_both(entries, job, seconds)
        return await self._of_both((), job, seconds)

    async def _of_both(
        self, entries: Sequence[SnapshotEntry], job: JobOfAll, seconds: float
    ) -> ReaderAnswer | QuestionRefusal:
        by_name = {entry.group_version: entry for entry in entries}
        for _ in range(_ATTEMPTS + len(entries)):
            version = self.version
            await self._align(version, seconds)
            found = await self.of_state(job, version, self._incomplete)
            match found:
                case Wants(None):
                    self._aligned = ""
                case Wants((group_version,)) if group_version in by_name:
                    await self._hand(by_name[group_version])
                case Wants():
                    raise Unready(503, "the reader wants a document that nobody asked for")
                case _:
                    return found
        raise Unready(503, "documents change faster than they are read")

    async def of_found(
        self, job: Callable[Concatenate[State, str, P], R | Wants], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """The result of a job that finds out itself which documents it is about, of those of the version that
        it is told. Raises Unready."""
        for _ in range(_ATTEMPTS_TO_FIND):
            snapshot, version = self._snapshot(), self.version
            found = await self.of_state(job, version, *args, **kwargs)
            match found:
                case Wants(None):
                    hashes = {key: str(entry.key.hash) for key, entry in snapshot.entries.items()}
                    await self.of_state(_FOLLOW, version, hashes)
                case Wants(wanted) if wanted and snapshot.entries.keys() >= set(wanted):
                    for group_version in wanted:
                        await self._hand(snapshot.entries[group_version])
                case Wants():
                    raise Unready(503, "the reader wants a document that is not published")
                case _:
                    return found
        raise Unready(503, "documents change faster than they are read")

    @property
    def version(self) -> str:
        """The version of the set of documents that is published."""
        return str(self._snapshot().root.hash)

    @property
    def is_complete(self) -> bool:
        """Every published document is in the index."""
        return self._aligned == self.version and not self._missing

    async def close(self) -> None:
        if self._aligning is not None:
            self._aligning[1].cancel()
            await asyncio.gather(self._aligning[1], return_exceptions=True)
        await self._reader.close()

    async def _hand(self, entry: SnapshotEntry) -> None:
        """Give the reader one document. Raises Unready."""
        if (reason := self._refusal_of(entry)) is not None:
            raise Unready(503, f"the document cannot be read: {reason}")
        body = await self._documents.obtain(entry.key, JSON, Coding.IDENTITY)
        if not isinstance(body, bytes):
            raise Unready(503, "the document is not available now: its backend failed or changed it")
        reason = self._oversize(body) or await self.of_state(_KEEP, str(entry.key.hash), body, self._share)
        if reason is not None:
            self._refuse(entry, reason)
            raise Unready(503, f"the document cannot be read: {reason}")

    def _oversize(self, body: bytes) -> str | None:
        """Why the reader need not be given it."""
        most = self._share.max_bytes
        return f"{len(body)} bytes, more than the {most} allowed" if len(body) > most else None

    def _refusal_of(self, entry: SnapshotEntry) -> str | None:
        hash, reason = self._refused.get(entry.group_version, ("", None))
        return reason if hash == str(entry.key.hash) else None

    def _refuse(self, entry: SnapshotEntry, reason: str) -> None:
        if self._refusal_of(entry) is None:
            told = "%s of backend %s is left out of search, explain and pages: %s"
            logger.warning(told, entry.group_version, entry.owner, reason)
        self._refused[entry.group_version] = str(entry.key.hash), reason
        for gone in self._refused.keys() - self._snapshot().entries.keys():
            del self._refused[gone]

    async def of_state(self, job: Callable[Concatenate[State, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a job that wants no document. Raises Unready."""
        try:
            return await self._reader.ask(job, *args, **kwargs)
        except ReaderBusy as error:
            raise Unready(429, str(error)) from error
        except ReaderFailed as error:
            self._aligned = ""
            raise Unready(503, str(error)) from error
        except ReaderFault as error:
            raise Unready(500, str(error)) from error

    async def _align(self, version: str, seconds: float) -> None:
        if self._aligned == version:
            return
        if self._aligning is None or self._aligning[0] != version or self._aligning[1].done():
            if self._aligning is not None:
                self._aligning[1].cancel()
            self._aligning = version, self._start_following(version)
        _, task = self._aligning
        await asyncio.wait((task,), timeout=seconds)
        if task.done() and not task.cancelled() and task.exception() is None:
            unready = task.result()
            if unready is not None:
                raise unready

    def _start_following(self, version: str, *, fetches: bool = True) -> asyncio.Task[Unready | None]:
        work = self._hand_over(self._snapshot(), version, fetches=fetches)
        task = asyncio.create_task(work, name="reader")
        log_failure(task, logger, "the index could not follow")
        return task

    async def _hand_over(self, snapshot: Snapshot, version: str, *, fetches: bool) -> Unready | None:
        """Hand over a Snapshot; returns what kept the index from following, which is no bug and not logged as
        one: the reader says it. Without ``fetches``, only documents that no backend is asked for."""
        wanted = {key: entry for key, entry in snapshot.entries.items() if split(key) is not None}
        hashes = {key: str(entry.key.hash) for key, entry in wanted.items()}
        at_once, in_turn = asyncio.Semaphore(HANDED_AT_ONCE), asyncio.Lock()
        per_backend: dict[BackendName, asyncio.Semaphore] = {}
        newly_refused: list[SnapshotEntry] = []

        def readable() -> _Hashes:
            return {key: hash for key, hash in hashes.items() if self._refusal_of(wanted[key]) is None}

        async def hand(entry: SnapshotEntry) -> None:
            of_owner = per_backend.setdefault(entry.owner, asyncio.Semaphore(PER_BACKEND))
            async with of_owner, at_once:
                # Every document passes here once: kept, the plain forms would fill the memory for documents.
                body = await self._documents.obtain(entry.key, JSON, Coding.IDENTITY, keeps=False)
                if isinstance(body, bytes):
                    # Who asks meanwhile waits for one document, not for those that are at hand already.
                    reason = self._oversize(body)
                    if reason is None:
                        async with in_turn:
                            hash = str(entry.key.hash)
                            reason = await self.of_state(_ADD, entry.group_version, hash, body, self._share)
                    if reason is not None:
                        self._refuse(entry, reason)
                        newly_refused.append(entry)
                    self._missing.pop(entry.group_version, None)
                else:
                    self._missing[entry.group_version] = "its backend failed"

        try:
            missing = await self.of_state(_ALIGN, version, readable())
            self._missing = dict.fromkeys(missing, "on its way")
            async with asyncio.TaskGroup() as group:
                for key in missing:
                    if fetches or self._is_at_hand(wanted[key]):
                        group.create_task(hand(wanted[key]))
            if newly_refused:  # an older document of the group-version goes from the index
                await self.of_state(_ALIGN, version, readable())
        except* Unready as errors:
            failed = errors.exceptions[0]
        else:
            if fetches or not self._missing:
                self._aligned = version
            return None
        return failed if isinstance(failed, Unready) else Unready(503, "documents could not be read")

    def _is_at_hand(self, entry: SnapshotEntry) -> bool:
        is_native = entry.offer.provenance is Provenance.NATIVE
        return not is_native or self._documents.find_json(entry.key) is not None
