"""Documents as their difference from the one that a client has (RFC 9842), made once per pair and form.

A gain and never a condition: whatever is unknown, late, large or wrong here means the ordinary answer.
"""

# Theory of operation
#
# A request names a dictionary by the hash of its document and by the SHA-256 of its bytes. The hash finds
# the document among those of the same group-version that the change log keeps. A worker makes the form that
# is requested of it, its SHA-256, and the new document compressed with it. Whoever offers that pair
# later costs two look-ups and a comparison of digests.
#
# The first to ask waits for the worker, ``dictionaries.wait`` seconds at most: a delta of 2 MB takes 13 ms
# and saves 150 KB, which a line of 100 Mbit/s sends in 12; and when a document changes, its followers ask
# all at once, so that nobody would get the delta that everybody waits for. A worker that is busy costs that
# wait once, and the delta is made for those who come later.
#
# Why nobody learns what he may not read: the guard has permitted this path, and a predecessor has the same
# path; modes of authentication permit paths, not versions. And the digest must match: who cannot show the
# SHA-256 of the whole predecessor gets nothing that was made with it.
#
# What must never happen: a delta for bytes that the client has not; a predecessor of another group-version;
# work that a client causes twice with equal requests, or without end with different ones: pairs are bounded
# by what is kept, deltas by ``max_bytes``, waiting jobs by JOBS_MAX, documents by DELTA_MAX.

from __future__ import annotations

import asyncio
import hmac
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from specmux_aggregator.config.settings import DictionarySettings
from specmux_aggregator.documents.representations import CodedBody
from specmux_aggregator.errors import NoWorker, WorkerFailed
from specmux_aggregator.http.dictionaries import OfferedDictionary
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.model.snapshot import DocumentKey
from specmux_aggregator.mounts import NamedFunction
from specmux_aggregator.workers.built import MadeDelta
from specmux_aggregator.workers.worker import Worker
from specmux_cache.reading.single_flight import SingleFlight
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import MediaType
from specmux_converters.memory import ByteBounded

if TYPE_CHECKING:  # imported in the worker process alone
    from specmux_aggregator.workers.documents import make_delta
else:
    make_delta = NamedFunction("specmux_aggregator.workers.documents:make_delta")

logger = logging.getLogger(__name__)

JOBS_MAX: Final = 64
"""Deltas that are made or wait for the worker; one more is not made."""

OVERHEAD: Final = 1024
"""Bytes that a delta counts beside its own, so that their number is bounded too."""

NONE: Final = MadeDelta(b"", b"")

Pair = tuple[DocumentKey, Hash, MediaType]
"""The new document, the hash of the old one, and the form of both."""


class DeltaResult(StrEnum):
    """What came of a dictionary that a client offered."""

    DELTA = "delta"
    LATE = "late"
    """The worker was busy: the delta is made for later requests."""
    UNKNOWN = "unknown"
    """No such document is kept of the group-version."""
    MISMATCHED = "mismatched"
    """The bytes that the client has are others, such as another form."""
    REFUSED = "refused"
    """The delta saves nothing, or could not be made."""


class Deltas:
    """Finds and makes them. ``close`` ends what is being made."""

    def __init__(
        self,
        worker: Worker,
        settings: DictionarySettings,
        *,
        is_kept: Callable[[GroupVersion, Hash], bool],
        document: Callable[[GroupVersion, Hash], Awaitable[bytes | None]],
        limits: Limits,
    ) -> None:
        """``is_kept``: whether a former document may be had. ``document``: its JSON as zstd."""
        self._worker = worker
        self._wait = settings.wait
        self._is_kept = is_kept
        self._document = document
        self._limits = limits
        self.kept: ByteBounded[Pair, MadeDelta] = ByteBounded(
            settings.max_bytes, size=lambda made: len(made.body) + OVERHEAD
        )
        self._flights: SingleFlight[Pair, MadeDelta | None] = SingleFlight()
        self._jobs = 0
        self.made = 0
        """Deltas that the worker made."""
        self.results: Counter[DeltaResult] = Counter()

    def find(self, key: DocumentKey, media_type: MediaType, dictionary: OfferedDictionary) -> bytes | None:
        """The delta; empty if there is none; None if it has to be made."""
        made = self.kept.get((key, dictionary.hash, media_type))
        if made is None and self._is_kept(key.group_version, dictionary.hash):
            return None
        return self._match(made, dictionary)

    async def make(
        self, key: DocumentKey, media_type: MediaType, dictionary: OfferedDictionary, body: CodedBody
    ) -> bytes:
        """The delta, which decodes to the same as ``body``; empty if there is none, or none soon."""
        found = self.find(key, media_type, dictionary)
        if found is not None:
            return found
        pair = key, dictionary.hash, media_type
        try:
            async with asyncio.timeout(self._wait):
                return self._match(await self._flights.run(pair, lambda: self._make(pair, body)), dictionary)
        except TimeoutError:
            self.results[DeltaResult.LATE] += 1
            return b""

    async def close(self) -> None:
        await self._flights.close()

    def _match(self, made: MadeDelta | None, dictionary: OfferedDictionary) -> bytes:
        """Its bytes, if the client has the dictionary that they were made with."""
        if made is None:
            result = DeltaResult.UNKNOWN
        elif made.digest and not hmac.compare_digest(made.digest, dictionary.digest):
            result = DeltaResult.MISMATCHED
        else:
            result = DeltaResult.DELTA if made.body else DeltaResult.REFUSED
        self.results[result] += 1
        return made.body if made is not None and result is DeltaResult.DELTA else b""

    async def _make(self, pair: Pair, body: CodedBody) -> MadeDelta | None:
        """None if the predecessor is gone."""
        if self._jobs >= JOBS_MAX:
            return NONE
        self._jobs += 1
        key, old_hash, media_type = pair
        try:
            old = await self._document(key.group_version, old_hash)
            if old is None:
                return None
            made = await self._worker.build(
                make_delta, old, body.body, body.coding, media_type=media_type, limits=self._limits
            )
        except NoWorker:  # no document is to blame: it is tried again
            return NONE
        except WorkerFailed as error:
            logger.warning(
                "a delta of the OpenAPI spec of %s could not be made: %s", key.group_version, error
            )
            made = NONE
        finally:
            self._jobs -= 1
        self.made += bool(made.body)
        self.kept.put(pair, made)
        return made
