"""The answers at hand: the service's own, and those it gave before to the same request.

A request is known again by its bytes, by what of its bytes decides (heads.py), or by the fields that the
parser found. All is forgotten with each generation of the service; an answer is not used past its
``good_until``, nor without leave that lasts. Of requests that carry secrets digests are kept.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace

from aiohttp import HttpVersion10
from aiohttp.hdrs import AUTHORIZATION
from aiohttp.http import RawRequestMessage

from specmux_aggregator.http.messages import Request
from specmux_aggregator.server.heads import deciding_part
from specmux_aggregator.server.protocols import ClientConnection, Guard, Responder
from specmux_aggregator.server.request_memo import KEY_MAX, RequestMemo, Slot
from specmux_aggregator.server.requests import request_of
from specmux_aggregator.server.stats import RequestStats


class Answers:
    """Shared by the connections of one server."""

    __slots__ = (
        "_deciding",
        "_exact",
        "_generation",
        "_guard",
        "_key",
        "_service",
        "_similar",
        "_stats",
        "_use_memo",
    )

    def __init__(
        self, service: Responder, stats: RequestStats, *, use_memo: bool = True, guard: Guard | None = None
    ) -> None:
        """Without ``use_memo`` the service is asked each time. ``guard``: whose leave there is when ``find``
        and ``remember`` are called."""
        self._service = service
        self._stats = stats
        self._use_memo = use_memo
        self._guard = guard
        self._key = secrets.token_bytes(32) if guard is not None and guard.takes_secrets else None
        self._generation = service.generation
        self._exact: RequestMemo[bytes | int] = RequestMemo()
        self._deciding: RequestMemo[bytes | int] = RequestMemo()
        self._similar: RequestMemo[Request] = RequestMemo()

    def recall(self, data: bytes, connection: ClientConnection, now: float) -> Slot | None:
        """The answer to these bytes, if they are a whole request and one like it was answered before, and
        whoever sends them may have it; ``now`` is monotonic."""
        if self._service.generation != self._generation:
            self._renew()
        slot = self._get(self._exact, data)
        if slot is None and self._deciding:
            slot = self._recall_similar(data)
        return slot if slot is not None and slot.is_for(connection, now) else None

    def _recall_similar(self, data: bytes) -> Slot | None:
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
        if not self._use_memo or (self._key is None and AUTHORIZATION in message.headers):  # no token is kept
            return
        if message.version == HttpVersion10:  # its client is told each time that the connection stays
            return
        known = []
        if len(data) <= KEY_MAX and self._exact.has_seen(hash(data)):
            known.append((self._exact, data))
        part = deciding_part(data) if message.method in ("GET", "HEAD") else None
        if part is None or len(part) > KEY_MAX or not part.startswith(message.method.encode()):
            part = None
        if part is not None and self._deciding.has_seen(hash(part)):
            known.append((self._deciding, part))
        if known and self._guard is not None:
            leave = self._guard.permits(message, connection)
            if leave is None:
                return
            slot = replace(slot, leave=leave)
        for memo, bytes_ in known:
            self._store(memo, bytes_, slot)

    def _get(self, memo: RequestMemo[bytes | int], data: bytes) -> Slot | None:
        if self._key is None:
            return memo.get(data)
        # The hash finds, the digest decides: most of what is not there costs no digest.
        slot = memo.get(hash(data))
        return slot if slot is not None and slot.digest == _digest(self._key, data) else None

    def _store(self, memo: RequestMemo[bytes | int], data: bytes, slot: Slot) -> None:
        if self._key is None:
            memo.store(data, slot)
        else:
            memo.store(hash(data), replace(slot, digest=_digest(self._key, data)))

    def find(self, message: RawRequestMessage, now: float) -> Slot | None:
        """The answer to a message that is not refused; None when the service has to wait for it."""
        if self._service.generation != self._generation:
            self._renew()
        request = request_of(message)
        slot = self._similar.get(request)
        if slot is not None and slot.is_good(now):
            return slot
        prepared = self._service.immediate(request)
        if prepared is None:
            return None
        slot = Slot(prepared, self._stats.cell(prepared))
        if self._use_memo and sum(len(field) for field in request if field) <= KEY_MAX:
            self._similar.offer(request, slot)
        return slot

    def _renew(self) -> None:
        self._generation = self._service.generation
        self._exact.clear()
        self._deciding.clear()
        self._similar.clear()


def _digest(key: bytes, data: bytes) -> bytes:
    """Stands for bytes that must not be kept. It is shown to nobody, so the key may simply come first."""
    return hashlib.sha256(key + data).digest()
