"""The bytes of a document in the form that a client wants: from memory, from disk, from its owner, or made
from another form.

Whatever is made or fetched is kept, so simultaneous first requests share one piece of work. A native document
is downloaded whole and checked before its first byte is sent: streaming would send truncated and forged ones
as a 200 that cannot be taken back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from specmux_aggregator.backend_sources.origin import Origin
from specmux_aggregator.documents.archive import StateDirectory
from specmux_aggregator.documents.representations import CodedBody, Representations
from specmux_aggregator.errors import TookTooLong, WorkerFailed
from specmux_aggregator.http.content_codings import decode_body, encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.failure import OUT_OF_REACH, Cause, Failure, build_failure
from specmux_aggregator.model.snapshot import DocumentKey
from specmux_aggregator.mounts import NamedFunction
from specmux_aggregator.tasks import FewThreads
from specmux_aggregator.upstream.client import MovedDocument, Payload
from specmux_aggregator.workers.built import EncodedDocument, Unencodable
from specmux_aggregator.workers.integrity import contradicts, fault_of, is_proven
from specmux_aggregator.workers.worker import Worker
from specmux_cache.reading.single_flight import SingleFlight
from specmux_converters.document import Limits as DocumentLimits
from specmux_converters.media_types import JSON, MediaType

if TYPE_CHECKING:  # imported in the worker process alone
    from specmux_aggregator.workers.documents import encode
else:
    encode = NamedFunction("specmux_aggregator.workers.documents:encode")


logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

INLINE_MAX = 100 * 1024
"""Bytes that are parsed or compressed on the event loop; more would block it for over a millisecond."""

PAUSE: Final = 10
"""An encoding that timed out is retried after this many times its duration. Other encodings wait for it, and
it ends their worker."""


Made = CodedBody | Failure | MovedDocument | Unencodable
Obtained = bytes | Failure | MovedDocument | Unencodable


class DocumentRepository:
    """Finds and makes forms of documents. ``timed`` is called with (phase, result, seconds) of every download
    and encoding."""

    def __init__(
        self,
        representations: Representations,
        worker: Worker,
        archive: StateDirectory | None,
        *,
        origin_of: Callable[[BackendName], Origin | None],
        limits: DocumentLimits,
        timed: Callable[[str, str, float], None],
        failure_of: Callable[[BackendName], Failure | None] = lambda name: None,
    ) -> None:
        """``failure_of``: how the last check of a backend failed. An unreachable backend is not asked."""
        self._representations = representations
        self._worker = worker
        self._archive = archive
        self._origin_of = origin_of
        self._failure_of = failure_of
        self._limits = limits
        self._timed = timed
        self._subscribers: list[Callable[[DocumentKey, CodedBody], None]] = []
        self._threads = FewThreads(2, "recode")
        self._recodings: SingleFlight[tuple[DocumentKey, MediaType, Coding, bool], bytes] = SingleFlight()
        self._sources: SingleFlight[DocumentKey, CodedBody | Failure | MovedDocument] = SingleFlight()
        self._encodings: SingleFlight[tuple[DocumentKey, MediaType], Made] = SingleFlight()
        self._paused: dict[tuple[DocumentKey, MediaType], tuple[Failure, float]] = {}
        """Encodings that are not attempted: why, and until when (the loop's time)."""

    def subscribe(self, fetched: Callable[[DocumentKey, CodedBody], None]) -> None:
        """Call ``fetched`` with JSON that came from its owner. It must neither wait nor raise."""
        self._subscribers.append(fetched)

    async def obtain(
        self, key: DocumentKey, media_type: MediaType, coding: Coding, *, keeps: bool = True
    ) -> Obtained:
        """The bytes of one form, or why they are unavailable. ``keeps``: whether the form, if it is made of
        another coding, is kept for later callers."""
        body = self._representations.get(key, media_type, coding)
        if body is not None:
            return body
        source = self._find_held(key, media_type) or await self._obtain_form(key, media_type, coding)
        if not isinstance(source, CodedBody):
            return source
        if source.coding is coding:
            return source.body
        return await self._recodings.run(
            (key, media_type, coding, keeps),
            lambda: self._recode(source, key, media_type, coding, keeps=keeps),
        )

    async def close(self) -> None:
        for flights in (self._recodings, self._encodings, self._sources):
            await flights.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _obtain_form(self, key: DocumentKey, media_type: MediaType, coding: Coding) -> Made:
        """The form in some coding if it is not in memory: ``coding`` if the owner is asked and supports
        it."""
        if media_type == JSON:
            return await self._sources.run(key, lambda: self._find(key, coding))
        return await self._encodings.run((key, media_type), lambda: self._encode(key, media_type))

    async def obtain_gzip(self, key: DocumentKey) -> bytes | None:
        """The JSON, gzipped, fetched if necessary; None if unavailable."""
        obtained = await self.obtain(key, JSON, Coding.GZIP)
        return obtained if isinstance(obtained, bytes) else None

    async def fetch(self, key: DocumentKey) -> bool:
        """Whether the JSON is in memory or on disk, or could be fetched now."""
        return await self.is_kept(key, JSON) or await self.obtain_gzip(key) is not None

    async def is_kept(self, key: DocumentKey, media_type: MediaType) -> bool:
        """Whether the form can be had without its owner."""
        if self._representations.holds(key) and any(
            self._find_held(key, form) is not None for form in (media_type, JSON)
        ):
            return True
        return self._archive is not None and await self._archive.has(key)

    def find_json(self, key: DocumentKey) -> CodedBody | None:
        """The JSON in some coding, if it is in memory."""
        return self._find_held(key, JSON)

    def _find_held(self, key: DocumentKey, media_type: MediaType) -> CodedBody | None:
        """The form in the coding that is cheapest to decode."""
        if not self._representations.holds(key):
            return None
        for coding in (Coding.IDENTITY, Coding.ZSTD, Coding.GZIP):
            body = self._representations.get(key, media_type, coding)
            if body is not None:
                return CodedBody(coding, body)
        return None

    async def _encode(self, key: DocumentKey, media_type: MediaType) -> Made:
        failure, until = self._paused.get((key, media_type), (None, 0.0))
        if failure is not None and (pause := until - _now()) > 0:
            return replace(failure, retry_after=pause)
        source = self._find_held(key, JSON) or await self._sources.run(
            key, lambda: self._find(key, Coding.GZIP)
        )
        if not isinstance(source, CodedBody):
            return source
        started = _now()
        try:
            form = await self._worker.build(
                encode, source.body, source.coding, media_type=media_type, limits=self._limits
            )
        except TookTooLong as error:
            form = self._pause(key, media_type, error)
        except WorkerFailed as error:
            form = build_failure(error)
        match form:
            case EncodedDocument(body):
                self._timed("encode", "ok", _now() - started)
                self._representations.put(key, media_type, Coding.IDENTITY, body)
                return CodedBody(Coding.IDENTITY, body)
            case Unencodable(reason):
                logger.warning(
                    "the OpenAPI spec of %s of backend %s has no form as %s: %s",
                    key.group_version,
                    key.owner,
                    media_type,
                    reason,
                )
                self._representations.refuse(key, media_type, reason)
        self._timed("encode", "failed", _now() - started)
        return form

    def _pause(self, key: DocumentKey, media_type: MediaType, error: TookTooLong) -> Failure:
        now, pause = _now(), PAUSE * error.seconds
        logger.warning(
            "the OpenAPI spec of %s of backend %s as %s: %s; not tried again for %g s",
            key.group_version,
            key.owner,
            media_type,
            error,
            pause,
        )
        failure = Failure(Cause.BUILD_FAILED, str(error), retry_after=pause)
        self._paused = {at: held for at, held in self._paused.items() if held[1] > now}
        self._paused[key, media_type] = failure, now + pause
        return failure

    async def _find(self, key: DocumentKey, coding: Coding) -> CodedBody | Failure | MovedDocument:
        """The JSON form in some coding: from disk, else from the owner."""
        if self._archive is not None and (stored := await self._archive.load(key)) is not None:
            self._representations.put(key, JSON, Coding.IDENTITY, stored)
            return CodedBody(Coding.IDENTITY, stored)
        origin = self._origin_of(key.owner)
        if origin is None:
            return Failure(Cause.NOT_FOUND, "its backend is gone")
        away = self._failure_of(key.owner)
        if away is not None and away.cause in OUT_OF_REACH:
            return away
        started = _now()
        fetched = await self._fetch(origin, key, coding)
        self._timed("download", "ok" if isinstance(fetched, CodedBody) else "failed", _now() - started)
        if isinstance(fetched, CodedBody):
            self._representations.put(key, JSON, fetched.coding, fetched.body)
            for subscriber in self._subscribers:
                subscriber(key, fetched)
            if self._archive is not None:
                self._archive.save(key, fetched)
        return fetched

    async def _fetch(
        self, origin: Origin, key: DocumentKey, coding: Coding
    ) -> CodedBody | Failure | MovedDocument:
        payload = await origin.document(
            key.group_version, hash=key.hash, accept_gzip=coding is not Coding.IDENTITY
        )
        if not isinstance(payload, Payload):
            return payload
        fault = await self._fault(payload, key)
        return CodedBody(payload.coding, payload.body) if fault is None else fault

    async def _fault(self, payload: Payload, key: DocumentKey) -> Failure | MovedDocument | None:
        """Why these bytes must not be served under this hash; None if they may."""
        body, coding = payload.body, payload.coding
        is_small = coding is Coding.IDENTITY and len(body) <= INLINE_MAX
        if is_small:
            proven = is_proven(body, coding, key.hash, limits=self._limits)
        else:
            proven = await self._in_thread(is_proven, body, coding, key.hash, limits=self._limits)
        if proven is True:
            return None
        if isinstance(proven, Failure):
            return proven
        if contradicts(payload.etag, key.hash):
            return MovedDocument(None)
        if is_small:
            return fault_of(body, coding, limits=self._limits)
        try:
            return await self._worker.run(fault_of, body, coding, limits=self._limits)
        except WorkerFailed as error:
            return build_failure(error)

    async def _recode(
        self, source: CodedBody, key: DocumentKey, media_type: MediaType, coding: Coding, *, keeps: bool
    ) -> bytes:
        if len(source.body) <= INLINE_MAX // 10:
            body = recode(source, coding, self._limits.max_bytes)
        else:
            # zlib and zstd release the GIL, so a thread is sufficient.
            body = await self._in_thread(recode, source, coding, self._limits.max_bytes)
        if keeps:
            self._representations.put(key, media_type, coding, body)
        return body

    async def _in_thread(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        work = partial(function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def recode(source: CodedBody, coding: Coding, max_bytes: int) -> bytes:
    """The same bytes in another content coding."""
    # Forms made here may exceed the limit on a backend's answer: Protobuf and CBOR of a document at the
    # limit.
    return encode_body(decode_body(source.body, source.coding, max_bytes=2 * max_bytes), coding)


def _now() -> float:
    return asyncio.get_running_loop().time()
