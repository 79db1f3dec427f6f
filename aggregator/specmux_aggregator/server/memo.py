"""Answers in memory: the service's own, and those given before to an equal request.

A request is recognized by its bytes, by the part of its head that decides (deciding_head.py), or by its
parsed fields. Everything is forgotten with each generation of the service; no answer is used past its
``good_until`` or without a lasting permission. Requests with secrets are kept as digests only.

Two generations of fixed size replace the bookkeeping of an LRU: new entries go to the young one; when it is
full, it becomes the old one and the previous old one is dropped. An entry found in the old one moves to the
young one, so entries in use survive. Nothing is stored at its first occurrence: a flood of distinct requests
(random hashes, unique headers) leaves only numbers in arrays of fixed size.
"""

# Theory of operation
#
# Three tables are asked one after the other. The first knows whole requests by their bytes: one hash and
# one comparison, no parser. The second knows requests by their deciding part: request line and the fields
# that decide (deciding_head.py), whatever ids and times a proxy adds that differ each time. The third knows
# parsed requests, for pipelined and split ones. What the third and the service find is offered to the
# first two.
#
# With a guard, an entry also has a permission, which is asked again for the connection at each hit, and
# the key is a digest under a secret of this process: the bytes may hold a token. Without one, a request
# with an Authorization field is not kept at all.
#
# ``generation`` of the service changes with every publication, and with all else that an answer may
# depend on. It is compared before each lookup, so nothing has to be invalidated.
#
# What must never happen: an answer of an earlier generation; one caller's permission used for another; a
# request that is not exactly one message from boundary to boundary as a key; memory that grows with what
# clients invent.

from __future__ import annotations

import secrets
from collections.abc import Hashable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Generic, TypeVar

from aiohttp import HttpVersion10
from aiohttp.hdrs import (
    ACCEPT,
    ACCEPT_ENCODING,
    AUTHORIZATION,
    HOST,
    IF_MATCH,
    IF_NONE_MATCH,
    USER_AGENT,
)
from aiohttp.http import RawRequestMessage
from multidict import istr

from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer
from specmux_aggregator.server.deciding_head import deciding_part
from specmux_aggregator.server.protocols import ClientConnection, Guard, Pending, Permission, Responder
from specmux_aggregator.server.stats import Cell, RequestStats

Key = TypeVar("Key", bound=Hashable)

GENERATION_SIZE: Final = 1024
"""Entries of one generation."""

GENERATION_BYTES: Final = 16 * 1024 * 1024
"""Bytes of bodies that one generation may keep alive."""

KEY_MAX: Final = 2048
"""Bytes or characters of the largest request that is remembered."""

LINES_MAX: Final = 4 * GENERATION_SIZE
"""Number of request lines known to be worth a look at their deciding part."""

AVAILABLE_DICTIONARY: Final = istr("Available-Dictionary")

TELLING: Final = (
    HOST,
    AUTHORIZATION,
    USER_AGENT,
    ACCEPT,
    ACCEPT_ENCODING,
    IF_NONE_MATCH,
    IF_MATCH,
    AVAILABLE_DICTIONARY,
)
"""The fields that decide the answer of nearly all requests."""


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A remembered answer."""

    prepared: PreparedAnswer
    cell: Cell
    """The cell of statistics in which the answer is counted."""
    permission: Permission | None = None
    """Permission of the caller that it was made for; None: everybody may have it."""
    digest: bytes = b""
    """Digest of the request, if the request itself must not be kept."""

    def is_good(self, now: float) -> bool:
        """``now``: monotonic seconds."""
        until = self.prepared.good_until
        return until is None or now < until


def slot_of(prepared: PreparedAnswer, stats: RequestStats) -> Slot:
    """An answer with its cell of statistics."""
    return Slot(prepared, stats.cells[prepared.route, prepared.format, prepared.status, prepared.is_stale])


class RequestMemo(Generic[Key]):
    """Maps a request to its answer. The caller ensures that keys are at most ``KEY_MAX``."""

    __slots__ = ("_bytes", "_old", "_seen", "_size", "young")

    def __init__(self, size: int = GENERATION_SIZE) -> None:
        """``size``: entries of one generation; a power of two."""
        self._size = size
        self._bytes = 0
        self.young: dict[Key, Slot] = {}
        """The newer generation, public so that hot callers can skip the call of ``get``."""
        self._old: dict[Key, Slot] = {}
        self._seen = [0] * size

    def __len__(self) -> int:
        return len(self.young) + len(self._old)

    def get(self, key: Key) -> Slot | None:
        slot = self.young.get(key)
        if slot is not None:
            return slot
        slot = self._old.pop(key, None)
        if slot is not None:
            self.store(key, slot)
        return slot

    def offer(self, key: Key, slot: Slot) -> None:
        """Store the answer unless the key is offered for the first time."""
        if self.has_seen(hash(key)):
            self.store(key, slot)

    def has_seen(self, fingerprint: int) -> bool:
        """Whether this hash was offered recently; records it."""
        place = fingerprint & (self._size - 1)
        if self._seen[place] == fingerprint:
            return True
        self._seen[place] = fingerprint
        return False

    def clear(self) -> None:
        self.young.clear()
        self._old.clear()
        self._bytes = 0

    def store(self, key: Key, slot: Slot) -> None:
        if len(self.young) >= self._size or self._bytes > GENERATION_BYTES:
            self._old = self.young
            self.young = {}
            self._bytes = 0
        self.young[key] = slot
        self._bytes += len(slot.prepared.body)


class Answers:
    """Shared by the connections of one server."""

    __slots__ = (
        "_deciding",
        "_exact",
        "_generation",
        "_guard",
        "_keyed",
        "_lines",
        "_service",
        "_similar",
        "_stats",
        "_use_memo",
    )

    def __init__(
        self, service: Responder, stats: RequestStats, *, use_memo: bool = True, guard: Guard | None = None
    ) -> None:
        """``use_memo``: False asks the service each time. ``guard``: asked for permission by ``find`` and
        ``remember``."""
        self._service = service
        self._stats = stats
        self._use_memo = use_memo
        self._guard = guard
        self._keyed = sha256(secrets.token_bytes(64)) if guard is not None and guard.takes_secrets else None
        self._generation = service.generation
        self._exact: RequestMemo[bytes | int] = RequestMemo()
        self._deciding: RequestMemo[bytes | int] = RequestMemo()
        self._lines: set[int] = set()
        """Hashes of the request lines of entries that are, or recently were, in ``_deciding``."""
        self._similar: RequestMemo[Request] = RequestMemo()

    def recall(self, data: bytes, connection: ClientConnection, now: float) -> Slot | None:
        """The answer to these bytes if they are a whole request, an equal one was answered before, and the
        sender is permitted; counts it. ``now``: monotonic seconds."""
        if self._service.generation != self._generation:
            self._renew()
        # The hot path: _get and Slot.is_good, inlined.
        if self._keyed is None:
            slot = self._exact.young.get(data) or self._exact.get(data)
        else:
            slot = self._exact.get(hash(data))
            if slot is not None and slot.digest != self._digest(data):
                slot = None
        if slot is None:
            slot = self._recall_similar(data)
            if slot is None:
                return None
        until, permission = slot.prepared.good_until, slot.permission
        if until is not None and now >= until:
            return None
        if permission is not None and not permission.lasts(connection, now):
            return None
        stats = self._stats
        stats.at_once += 1
        stats.memo_hits += 1
        return slot

    def _recall_similar(self, data: bytes) -> Slot | None:
        if hash(data[: data.find(b"\r")]) not in self._lines:
            return None
        part = deciding_part(data)
        slot = None if part is None else self._get(self._deciding, part)
        if slot is not None and len(data) <= KEY_MAX and self._exact.has_seen(hash(data)):
            self._store(self._exact, data, slot)
        return slot

    def remember(
        self, data: bytes, message: RawRequestMessage, connection: ClientConnection, slot: Slot
    ) -> None:
        """Remember ``slot`` as the answer to ``data``, which was exactly this message, from boundary to
        boundary, on a connection that continues."""
        if not self._use_memo:
            return
        if self._keyed is None and AUTHORIZATION in message.headers:  # tokens are never kept
            return
        if message.version == HttpVersion10:  # each answer to HTTP/1.0 says that the connection stays open
            return
        known = []
        if len(data) <= KEY_MAX and self._exact.has_seen(hash(data)):
            known.append((self._exact, data))
        if message.method in ("GET", "HEAD") and self._deciding.has_seen(_fingerprint(message)):
            part = deciding_part(data)
            if part is not None and len(part) <= KEY_MAX and part.startswith(message.method.encode()):
                known.append((self._deciding, part))
                self._note_line(data)
        if known and self._guard is not None:
            permission = self._guard.permits(message, connection)
            if permission is None:
                return
            slot = replace(slot, permission=permission)
        for memo, bytes_ in known:
            self._store(memo, bytes_, slot)

    def _note_line(self, data: bytes) -> None:
        if len(self._lines) >= LINES_MAX:
            self._lines.clear()  # entries in use return with their next request
        self._lines.add(hash(data[: data.find(b"\r")]))

    def _get(self, memo: RequestMemo[bytes | int], data: bytes) -> Slot | None:
        if self._keyed is None:
            return memo.get(data)
        # Look up by hash and decide by digest, so that most misses cost no digest.
        slot = memo.get(hash(data))
        return slot if slot is not None and slot.digest == self._digest(data) else None

    def _store(self, memo: RequestMemo[bytes | int], data: bytes, slot: Slot) -> None:
        if self._keyed is None:
            memo.store(data, slot)
        else:
            memo.store(hash(data), replace(slot, digest=self._digest(data)))

    def find(self, request: Request, now: float) -> Slot | Pending:
        """The answer to a request that was not refused."""
        if self._service.generation != self._generation:
            self._renew()
        slot = self._similar.get(request)
        if slot is not None and slot.is_good(now):
            return slot
        found = self._service.immediate(request)
        if not isinstance(found, PreparedAnswer):
            return found
        slot = self.slot(found)
        if self._use_memo and sum(len(field) for field in request if field) <= KEY_MAX:
            self._similar.offer(request, slot)
        return slot

    def slot(self, prepared: PreparedAnswer) -> Slot:
        return slot_of(prepared, self._stats)

    def _digest(self, data: bytes) -> bytes:
        """SHA-256 of a secret followed by the data, for requests that must not be kept. The digest never
        leaves the process, so a secret prefix is sufficient. The prefix fills one block, hashed once; copying
        that state is cheaper than creating a new hash object in OpenSSL, which costs more than the digest
        itself."""
        assert self._keyed is not None
        digest = self._keyed.copy()
        digest.update(data)
        return digest.digest()

    def stop(self) -> None:
        """Ask the service each time from now on: remembered answers do not say that they are the last."""
        self._use_memo = False
        self._renew()

    def _renew(self) -> None:
        self._generation = self._service.generation
        self._exact.clear()
        self._deciding.clear()
        self._lines.clear()
        self._similar.clear()


def _fingerprint(message: RawRequestMessage) -> int:
    """A number that nearly always differs where the deciding part does: sufficient for first occurrences, at
    a third of the cost."""
    return hash((message.method, message.path, *map(message.headers.get, TELLING)))
