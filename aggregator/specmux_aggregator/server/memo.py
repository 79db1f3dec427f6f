"""The answers at hand: the service's own, and those it gave before to the same request.

A request is known again by its bytes, by what of its bytes decides (heads.py), or by the fields that the
parser found. All is forgotten with each generation of the service; an answer is not used past its
``good_until``, nor without a permission that lasts. Of requests that carry secrets digests are kept.

Two generations of a fixed size replace an LRU's bookkeeping: new entries go to the young one; when that is
full it becomes the old one, and the previous old one is dropped. An entry found in the old one moves to the
young one, so what is in use stays. Nothing enters at its first sight: a flood of requests that all differ
(random hashes, a unique header each) leaves no trace but numbers in arrays of fixed size.
"""

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

from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared import PreparedAnswer
from specmux_aggregator.server.heads import deciding_part
from specmux_aggregator.server.protocols import ClientConnection, Guard, Pending, Permission, Responder
from specmux_aggregator.server.requests import request_of
from specmux_aggregator.server.stats import Cell, RequestStats

Key = TypeVar("Key", bound=Hashable)

GENERATION_SIZE: Final = 1024
"""Entries of one generation."""

GENERATION_BYTES: Final = 16 * 1024 * 1024
"""Bytes of bodies that one generation may keep from being freed elsewhere."""

KEY_MAX: Final = 2048
"""Bytes or characters of a request that is worth remembering."""

LINES_MAX: Final = 4 * GENERATION_SIZE
"""Request lines of which it is known that looking at what decides is worth it."""

TELLING: Final = (HOST, AUTHORIZATION, USER_AGENT, ACCEPT, ACCEPT_ENCODING, IF_NONE_MATCH, IF_MATCH)
"""The fields that decide in nearly all requests."""


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A remembered answer."""

    prepared: PreparedAnswer
    cell: Cell
    """Where it is counted."""
    permission: Permission | None = None
    """Of whom it was for; None: everybody may have it."""
    digest: bytes = b""
    """Of the request, where that must not be kept."""

    def is_good(self, now: float) -> bool:
        """``now``: monotonic seconds."""
        until = self.prepared.good_until
        return until is None or now < until


def slot_of(prepared: PreparedAnswer, stats: RequestStats) -> Slot:
    """An answer with the place where it is counted."""
    return Slot(prepared, stats.cells[prepared.route, prepared.format, prepared.status, prepared.is_stale])


class RequestMemo(Generic[Key]):
    """From a request to its answer. Not for keys above ``KEY_MAX``: whoever stores checks that."""

    __slots__ = ("_bytes", "_old", "_seen", "_size", "young")

    def __init__(self, size: int = GENERATION_SIZE) -> None:
        """``size``: entries of one generation; a power of two."""
        self._size = size
        self._bytes = 0
        self.young: dict[Key, Slot] = {}
        """The newer generation, for whoever saves the call of ``get`` where most keys are in it."""
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
        """Remember the answer, unless this is the first time that this key is offered."""
        if self.has_seen(hash(key)):
            self.store(key, slot)

    def has_seen(self, fingerprint: int) -> bool:
        """Whether what has this hash was offered before, of late; from now on it was."""
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
        """Without ``use_memo`` the service is asked each time. ``guard``: gives the permission when ``find``
        and ``remember`` are called."""
        self._service = service
        self._stats = stats
        self._use_memo = use_memo
        self._guard = guard
        self._keyed = sha256(secrets.token_bytes(64)) if guard is not None and guard.takes_secrets else None
        self._generation = service.generation
        self._exact: RequestMemo[bytes | int] = RequestMemo()
        self._deciding: RequestMemo[bytes | int] = RequestMemo()
        self._lines: set[int] = set()
        """Hashes of the request lines of what is in ``_deciding``, and was of late."""
        self._similar: RequestMemo[Request] = RequestMemo()

    def recall(self, data: bytes, connection: ClientConnection, now: float) -> Slot | None:
        """The answer to these bytes, if they are a whole request and one like it was answered before, and
        whoever sends them may have it; it is counted. ``now`` is monotonic."""
        if self._service.generation != self._generation:
            self._renew()
        # Asked about every request: what follows is _get and Slot.is_good without the calls.
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
        """``data`` was this message and nothing else, from boundary to boundary, and ``slot`` is its answer;
        the connection goes on after it."""
        if not self._use_memo:
            return
        if self._keyed is None and AUTHORIZATION in message.headers:  # no token is kept
            return
        if message.version == HttpVersion10:  # its client is told each time that the connection stays
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
            self._lines.clear()  # those in use come back with their next request
        self._lines.add(hash(data[: data.find(b"\r")]))

    def _get(self, memo: RequestMemo[bytes | int], data: bytes) -> Slot | None:
        if self._keyed is None:
            return memo.get(data)
        # The hash finds, the digest decides: most of what is not there costs no digest.
        slot = memo.get(hash(data))
        return slot if slot is not None and slot.digest == self._digest(data) else None

    def _store(self, memo: RequestMemo[bytes | int], data: bytes, slot: Slot) -> None:
        if self._keyed is None:
            memo.store(data, slot)
        else:
            memo.store(hash(data), replace(slot, digest=self._digest(data)))

    def find(self, message: RawRequestMessage, now: float) -> Slot | Pending:
        """The answer to a message that is not refused."""
        if self._service.generation != self._generation:
            self._renew()
        request = request_of(message)
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
        """Stands for bytes that must not be kept: SHA-256 of a secret and of them. It is shown to nobody, so
        the secret may simply come first. It fills a block of SHA-256, which is done once; and what OpenSSL
        does to set out anew costs more than the digest of a request, so what is set out is copied."""
        assert self._keyed is not None
        digest = self._keyed.copy()
        digest.update(data)
        return digest.digest()

    def stop(self) -> None:
        """From now on the service is asked each time: what is remembered does not say that it is the last."""
        self._use_memo = False
        self._renew()

    def _renew(self) -> None:
        self._generation = self._service.generation
        self._exact.clear()
        self._deciding.clear()
        self._lines.clear()
        self._similar.clear()


def _fingerprint(message: RawRequestMessage) -> int:
    """A number that differs, nearly always, where what decides does: enough for a first sight, at a third of
    what finding the deciding part costs."""
    return hash((message.method, message.path, *map(message.headers.get, TELLING)))
