"""The answers at hand: the service's own, and those it gave before to the same request.

A request is known again by its bytes, by what of its bytes decides (heads.py), or by the fields that the
parser found. All is forgotten with each generation of the service, and an answer is not used past its
``good_until``.
"""

from __future__ import annotations

from aiohttp.hdrs import AUTHORIZATION
from aiohttp.http import RawRequestMessage

from specmux_aggregator.server.heads import deciding_part
from specmux_aggregator.server.protocols import Responder
from specmux_aggregator.server.request_memo import KEY_MAX, RequestMemo, Slot
from specmux_aggregator.server.requests import Fields, fields_of, request_of
from specmux_aggregator.server.stats import RequestStats


class Answers:
    """Shared by the connections of one server."""

    __slots__ = (
        "_deciding",
        "_exact",
        "_generation",
        "_is_guarded",
        "_service",
        "_similar",
        "_stats",
        "_use_memo",
    )

    def __init__(
        self, service: Responder, stats: RequestStats, *, use_memo: bool = True, is_guarded: bool = False
    ) -> None:
        """Without ``use_memo`` the service is asked each time. ``is_guarded``: ``find`` is called once there
        is leave to answer. Then no request is remembered by its bytes: they hold credentials, and the same
        ones may be refused tomorrow.
        """
        self._service = service
        self._stats = stats
        self._use_memo = use_memo
        self._is_guarded = is_guarded
        self._generation = service.generation
        self._exact: RequestMemo[bytes] = RequestMemo()
        self._deciding: RequestMemo[bytes] = RequestMemo()
        self._similar: RequestMemo[Fields] = RequestMemo()

    def recall(self, data: bytes, now: float) -> Slot | None:
        """The answer to these bytes, if they are a whole request and one like it was answered before; ``now``
        is monotonic."""
        if self._service.generation != self._generation:
            self._renew()
        slot = self._exact.get(data)
        if slot is None and self._deciding:
            slot = self._recall_similar(data)
        return slot if slot is not None and slot.is_good(now) else None

    def _recall_similar(self, data: bytes) -> Slot | None:
        part = deciding_part(data)
        slot = None if part is None else self._deciding.get(part)
        if slot is not None and len(data) <= KEY_MAX:
            self._exact.offer(data, slot)
        return slot

    def remember(self, data: bytes, message: RawRequestMessage, slot: Slot) -> None:
        """``data`` was this message and nothing else, from boundary to boundary, and ``slot`` is its answer;
        the connection goes on after it."""
        if not self._use_memo or self._is_guarded or AUTHORIZATION in message.headers:  # no token is kept
            return
        if len(data) <= KEY_MAX:
            self._exact.offer(data, slot)
        part = deciding_part(data) if message.method in ("GET", "HEAD") else None
        if part is not None and len(part) <= KEY_MAX and part.startswith(message.method.encode()):
            self._deciding.offer(part, slot)

    def find(self, message: RawRequestMessage, now: float) -> Slot | None:
        """The answer to a message that is not refused; None when the service has to wait for it."""
        if self._service.generation != self._generation:
            self._renew()
        fields = fields_of(message)
        slot = self._similar.get(fields)
        if slot is not None and slot.is_good(now):
            return slot
        prepared = self._service.immediate(request_of(fields))
        if prepared is None:
            return None
        slot = Slot(prepared, self._stats.cell(prepared))
        if self._use_memo and sum(len(field) for field in fields if field) <= KEY_MAX:
            self._similar.offer(fields, slot)
        return slot

    def _renew(self) -> None:
        self._generation = self._service.generation
        self._exact.clear()
        self._deciding.clear()
        self._similar.clear()
