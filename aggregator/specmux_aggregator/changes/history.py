"""Follow publications and determine what changed, after a group-version has settled, one at a time.

A document is compared with the last settled one, so a document that changes back within that time has not
changed. Nothing here fails a request or delays a publication.
"""

# Theory of operation
#
# ``follow`` is called for each Snapshot, within the publication, and only notes: which group-versions
# differ, until when each has to stay as it is to count as settled, and the bytes that are in memory,
# which the publisher is about to forget. One task, ``_run``, does the rest in order of time, one
# group-version after the other.
#
# To settle is to store the new document, compare it with the last settled one in a worker, write the
# entry to disk, add it to the log, and tell followers, in this order. A follower that comes back after a
# crash asks for what follows the id it has seen, so an id that was sent must be on disk.
#
# At a start nothing has changed: what an earlier process settled is read from disk and is the base of
# comparison, and without it the first complete Snapshot is recorded silently. What went while no process
# ran is noticed after the first check of all backends, since no Snapshot shows its removal.
#
# Documents are kept as zstd, within a bound of bytes and of versions; what cannot be obtained is an entry
# without findings, not an error.
#
# What must never happen: a publication that waits for this; an entry sent before it is stored; an entry
# for what a start merely found; two comparisons at a time.

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import orjson

from specmux_aggregator.changes.document_history import KeptDocuments
from specmux_aggregator.changes.entries import (
    NOTHING,
    ComparisonOutcome,
    Findings,
    LogEntry,
    PublishedVersion,
    entry_of,
    read_entry,
)
from specmux_aggregator.changes.events import MOST_OF_ADDRESS, Followers
from specmux_aggregator.changes.log import ChangeLog
from specmux_aggregator.config.settings import ChangeSettings
from specmux_aggregator.documents.archive import StateDirectory
from specmux_aggregator.documents.repository import recode
from specmux_aggregator.documents.representations import CodedBody
from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.http.content_codings import BadCoding, TooLarge
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.observation import Hash, Provenance
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_aggregator.mounts import DIFFERENCES, NamedFunction
from specmux_aggregator.tasks import log_failure
from specmux_aggregator.workers.worker import Worker
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion, split

logger = logging.getLogger(__name__)

_COMPARE: Final[NamedFunction[..., Findings | str]] = NamedFunction(DIFFERENCES)

OTHERS_MAX: Final = 8
"""Most other versions of a group that are read for one comparison."""

PACKED_AT_ONCE: Final = 64 * 1024
"""Largest body in bytes that is compressed on the event loop: 50 KB take 34 µs, and a round trip to a thread
as long again."""

KEPT_AFTER: Final = 2.0
"""Seconds, a second more at most, after a document was fetched until it is compressed, so that a client that
reads many waits for none."""


LOOK: Final = 1.0
"""Seconds between two looks whether the first check of backends is over."""


class History:
    """The change log of one service. Lives on one event loop, from ``start`` to ``close``."""

    def __init__(
        self,
        settings: ChangeSettings,
        worker: Worker,
        archive: StateDirectory | None,
        *,
        held: Callable[[DocumentKey], CodedBody | None],
        obtain: Callable[[DocumentKey], Awaitable[bytes | None]],
        limits: Limits,
        noted: Callable[[LogEntry, float], None],
        most_of_address: int = MOST_OF_ADDRESS,
        is_looking: Callable[[], bool] | None = None,
    ) -> None:
        """``held``: a document's JSON if it is in memory; ``obtain``: its JSON gzipped, fetched. ``noted`` is
        called with every entry and its duration in seconds. ``most_of_address``: as in ``Followers``.
        ``is_looking``: whether backends have not been checked yet; None: by the Snapshot."""
        self._settings = settings
        self._worker = worker
        self._archive = archive
        self._held = held
        self._obtain = obtain
        self._limits = limits
        self._noted = noted
        self.log = ChangeLog(most_entries=settings.entries, most_bytes=settings.max_bytes)
        self.kept = KeptDocuments(most_each=settings.documents, most_bytes=settings.max_bytes)
        self.followers = Followers(self.log, most_of_address=most_of_address)
        self._snapshot: Snapshot | None = None
        self._is_looking = is_looking or (lambda: not self._is_complete())
        self._has_looked = False
        """Whether it is known what an earlier process published and no backend has any more."""
        self._settled: dict[GroupVersion, PublishedVersion] = {}
        self._due: dict[GroupVersion, float] = {}
        """When each group-version settles, on the loop's clock."""
        self._bodies: dict[GroupVersion, tuple[Hash, CodedBody]] = {}
        """Documents that were published but not stored yet; the publisher does not keep them."""
        self._replaced: dict[GroupVersion, tuple[Hash, CodedBody]] = {}
        """Settled documents that were replaced before they were stored."""
        self._is_known = False
        """Whether the earlier publications are known: what a service finds at its start has not changed."""
        self._is_busy = False
        self._woken = asyncio.Event()
        self._looks_at = -math.inf
        """When it next checks what is due, on the loop's clock; in the past while it is checking."""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Load what an earlier process stored; then follow."""
        if self._archive is not None:
            bodies, published, began_at = await self._archive.recall_changes()
            entries = filter(None, map(read_entry, bodies))
            self._drop(self.log.restore(entries))
            self._settled = _read_published(published)
            for entry in self.log.latest():  # an entry is stored before its document
                self._settled.pop(entry.group_version, None)
                if entry.new is not None:
                    self._settled[entry.group_version] = entry.new
            # All may be gone: what comes back then is a change, and followers know of its removal.
            self._is_known = bool(self._settled) or len(self.log) > 0
            if self._is_known:
                self._begin_log(began_at)
        self._task = asyncio.create_task(self._run(), name="changes")
        log_failure(self._task, logger, "changes are no longer logged")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def follow(self, snapshot: Snapshot) -> None:
        """Note a new Snapshot."""
        before, self._snapshot = self._snapshot, snapshot
        current = _versions(snapshot)
        self.followers.note_published(current)
        now = asyncio.get_running_loop().time()
        last = {} if before is None else _versions(before)
        for name in current.keys() | last.keys():
            if current.get(name) == last.get(name):
                continue
            self._put_aside(name)
            self._keep_body(name, snapshot)
            # A first document has no predecessor to settle against: store it at once.
            wait = self._settings.settle if name in self._settled else 0.0
            self._due[name] = now + wait
        self._woken.set()

    def note_fetched(self, key: DocumentKey, json: CodedBody) -> None:
        """Note the bytes of a native document that was fetched."""
        settled = self._settled.get(key.group_version)
        if settled is not None and settled.hash == key.hash and key.owner == settled.backend:
            self._bodies[key.group_version] = (key.hash, json)
            soon = float(math.ceil(asyncio.get_running_loop().time() + KEPT_AFTER))  # many fall due at once
            due = self._due.setdefault(key.group_version, soon)
            if due < self._looks_at:  # avoid one check per document of thousands
                self._woken.set()

    async def document(self, name: GroupVersion, hash: Hash) -> bytes | None:
        """A stored document as zstd, from memory or disk."""
        body = self.kept.get(name, hash)
        if body is None and self._archive is not None:
            body = await self._archive.recall_document(name, hash)
            if body is not None:
                self.kept.put(name, hash, body)
        return body

    def is_kept(self, name: GroupVersion, hash: Hash) -> bool:
        """Whether ``document`` may find it: in memory, or on disk as far as the log reaches back."""
        in_memory = hash in self.kept.hashes(name)
        return in_memory or (self._archive is not None and self.log.has_seen(name, hash))

    async def comparison(self, name: GroupVersion, old: Hash, new: Hash) -> Findings | str | None:
        """Compare two stored documents; None if one is not stored. Raises WorkerFailed."""
        bodies = await self.document(name, old), await self.document(name, new)
        if bodies[0] is None or bodies[1] is None:
            return None
        return await self._worker.run(_COMPARE, *bodies, (), limits=self._limits)

    @property
    def is_settled(self) -> bool:
        """Whether no publication waits to be processed."""
        return self._is_known and not self._due and not self._is_busy

    def is_published(self, name: GroupVersion) -> bool:
        return self._snapshot is not None and name in self._snapshot.entries

    def hashes(self, name: GroupVersion) -> tuple[Hash, ...]:
        """Hashes of the documents in memory, newest first."""
        return self.kept.hashes(name)

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            self._looks_at = -math.inf
            now = asyncio.get_running_loop().time()
            for name in [name for name, due in self._due.items() if due <= now]:
                self._is_busy = True
                del self._due[name]
                await self._settle(name)
                await asyncio.sleep(0)  # let others run: thousands of documents may need no waiting
            if not self._is_known:  # nothing is recorded yet: record everything once
                self._keep_published()
            self._is_busy = False
            if not self._is_known and not self._due and self._is_complete():
                self._is_known = True
                self._begin_log()
            self._note_gone()
            self._looks_at = min(self._due.values(), default=math.inf)
            if not self._has_looked:
                self._looks_at = min(self._looks_at, asyncio.get_running_loop().time() + LOOK)
            try:
                async with asyncio.timeout_at(self._looks_at if self._looks_at < math.inf else None):
                    await self._woken.wait()
            except TimeoutError:
                continue

    def _begin_log(self, began_at: float | None = None) -> None:
        """``began_at``: as stored by an earlier process; a version that stored none may have left entries."""
        self.log.began_at = began_at or min((entry.at for entry in self.log), default=time.time())
        if began_at is None and self._archive is not None:
            self._archive.keep_beginning(self.log.began_at)

    def _note_gone(self) -> None:
        """Let settle what was published before the start and is gone: no Snapshot shows its removal."""
        if self._has_looked or self._snapshot is None or self._is_looking():
            return
        self._has_looked = True
        due = asyncio.get_running_loop().time() + self._settings.settle
        for name in self._settled.keys() - self._snapshot.entries.keys():
            self._due.setdefault(name, due)

    def _is_complete(self) -> bool:
        """Whether every backend was asked at least once."""
        return self._snapshot is not None and not self._snapshot.is_partial

    async def _settle(self, name: GroupVersion) -> None:
        entry = None if self._snapshot is None else self._snapshot.entries.get(name)
        new = None if entry is None else PublishedVersion(entry.offer.hash, entry.owner)
        old = self._settled.get(name)
        replaced = self._replaced.pop(name, None)
        if replaced is not None:
            await self._keep_packed(name, *replaced)
        if new is not None:
            await self._keep(name, new)
        if old == new:
            return
        if new is None:
            self._bodies.pop(name, None)
            del self._settled[name]
        else:
            self._settled[name] = new
        if self._is_known:
            await self._record(name, old, new)
            self._keep_published()

    def _keep_published(self) -> None:
        if self._archive is not None:
            self._archive.keep_published(_write_published(self._settled))

    async def _record(
        self, name: GroupVersion, old: PublishedVersion | None, new: PublishedVersion | None
    ) -> None:
        started = time.perf_counter()
        outcome, found = await self._outcome(name, old, new)
        entry = entry_of(self.log.next_id(), time.time(), name, outcome, (old, new), found)
        if self._archive is not None:
            # Store it before sending: a follower that returns after a crash asks for what follows an id it
            # has seen.
            await self._archive.keep_change(name, entry.id, entry.body)
        # In one step: otherwise a follower that joins in between would receive it twice.
        self._drop(self.log.add(entry))
        self._noted(entry, time.perf_counter() - started)
        self.followers.note_change(entry)

    async def _outcome(
        self, name: GroupVersion, old: PublishedVersion | None, new: PublishedVersion | None
    ) -> tuple[ComparisonOutcome, Findings]:
        if old is not None and new is not None and old.hash == new.hash:
            return ComparisonOutcome.MOVED, NOTHING
        returns = new is not None and self.log.has_seen(name, new.hash)
        bodies = []
        for version in (old, new):
            body = None if version is None else await self.document(name, version.hash)
            if version is not None and body is None:
                return ComparisonOutcome.RETURNED if returns else ComparisonOutcome.UNAVAILABLE, NOTHING
            bodies.append(body)
        try:
            # nothing was removed that they could still serve
            others = () if old is None else self._others(name)
            found = await self._worker.run(_COMPARE, bodies[0], bodies[1], others, limits=self._limits)
        except WorkerFailed as error:
            found = str(error)
        if isinstance(found, str):
            logger.warning("the OpenAPI spec of %s could not be compared with what it was: %s", name, found)
            return ComparisonOutcome.FAILED, NOTHING
        return ComparisonOutcome.RETURNED if returns else ComparisonOutcome.COMPARED, found

    def _others(self, name: GroupVersion) -> Sequence[bytes]:
        """Documents of the group's other versions that are in memory."""
        group = split(name)
        if group is None:
            return []
        bodies = [
            self.kept.get(other, version.hash)
            for other, version in sorted(self._settled.items())
            if other != name and (found := split(other)) is not None and found[0] == group[0]
        ]
        return [body for body in bodies if body is not None][:OTHERS_MAX]

    def _put_aside(self, name: GroupVersion) -> None:
        """Keep a fetched but unstored document: the next one will be compared with it."""
        settled, fetched = self._settled.get(name), self._bodies.get(name)
        if settled is not None and fetched is not None and fetched[0] == settled.hash:
            self._replaced[name] = self._bodies.pop(name)

    def _keep_body(self, name: GroupVersion, snapshot: Snapshot) -> None:
        entry = snapshot.entries.get(name)
        held = None if entry is None else self._held(entry.key)
        if entry is not None and held is not None:
            self._bodies[name] = (entry.offer.hash, held)

    async def _keep(self, name: GroupVersion, version: PublishedVersion) -> None:
        """Store the bytes of the current document as zstd, if they are in memory or may be fetched."""
        if self.kept.get(name, version.hash) is not None:
            self._bodies.pop(name, None)
            return
        hash, json = self._bodies.pop(name, (None, None))
        if hash != version.hash or json is None:
            json = await self._obtain_json(name)
        if json is not None:
            await self._keep_packed(name, version.hash, json)

    async def _keep_packed(self, name: GroupVersion, hash: Hash, json: CodedBody) -> None:
        try:
            if json.coding is Coding.IDENTITY and len(json.body) <= PACKED_AT_ONCE:
                body = recode(json, Coding.ZSTD, self._limits.max_bytes)
            else:
                body = await asyncio.to_thread(recode, json, Coding.ZSTD, self._limits.max_bytes)
        except (BadCoding, TooLarge, MemoryError) as error:
            reason = str(error) or "out of memory"
            logger.warning("the OpenAPI spec of %s is not kept for comparisons: %s", name, reason)
            return
        self.kept.put(name, hash, body)
        if self._archive is not None:
            self._archive.keep_document(name, hash, body)

    async def _obtain_json(self, name: GroupVersion) -> CodedBody | None:
        entry = None if self._snapshot is None else self._snapshot.entries.get(name)
        if entry is None:
            return None
        held = self._held(entry.key)
        if held is not None:
            return held
        if entry.offer.provenance is Provenance.NATIVE and not self._settings.fetch_native:
            return None
        body = await self._obtain(entry.key)
        return None if body is None else CodedBody(Coding.GZIP, body)

    def _drop(self, entries: list[LogEntry]) -> None:
        if self._archive is not None:
            for entry in entries:
                self._archive.drop_change(entry.group_version, entry.id)


def _versions(snapshot: Snapshot) -> dict[GroupVersion, PublishedVersion]:
    return {name: PublishedVersion(entry.offer.hash, entry.owner) for name, entry in snapshot.entries.items()}


def _write_published(versions: Mapping[GroupVersion, PublishedVersion]) -> bytes:
    return orjson.dumps({name: [version.hash, version.backend] for name, version in versions.items()})


def _read_published(body: bytes | None) -> dict[GroupVersion, PublishedVersion]:
    try:
        value = orjson.loads(body or b"{}")
        return {
            GroupVersion(name): PublishedVersion(hash, backend) for name, (hash, backend) in value.items()
        }
    except (orjson.JSONDecodeError, AttributeError, TypeError, ValueError):
        return {}
