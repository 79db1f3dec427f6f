"""The bytes of documents in memory, in every form made so far, within one budget.

A *pinned* form is never evicted: the last copy of a document built here that nothing could supply again. All
other forms can be made again, from another form or by asking the owner; the least recently used are evicted
first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass

from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.snapshot import DocumentKey
from specmux_converters.media_types import MediaType

Form = tuple[MediaType, Coding]


@dataclass(frozen=True, slots=True)
class CodedBody:
    """Bytes with their content coding."""

    coding: Coding
    body: bytes


@dataclass(frozen=True, slots=True)
class Usage:
    """Contents of the store, for metrics and /status."""

    bytes: int
    pinned_bytes: int
    documents: int
    forms: int
    evictions: int
    sheddings: int


class Representations:
    """Bytes by document and form, at most ``max_bytes`` besides the pinned ones.

    Not thread-safe.
    """

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._forms: OrderedDict[tuple[DocumentKey, Form], bytes] = OrderedDict()
        self._of: dict[DocumentKey, dict[Form, None]] = {}
        self._pinned: dict[tuple[DocumentKey, Form], bytes] = {}
        self._refused: dict[tuple[DocumentKey, MediaType], str] = {}
        self._bytes = 0
        self._pinned_bytes = 0
        self._evictions = 0
        self._sheddings = 0
        self.evicting_rounds = 0
        """Increases with each eviction: other holders of the bytes release them too."""

    def get(self, key: DocumentKey, media_type: MediaType, coding: Coding) -> bytes | None:
        """The bytes; marks them as just used."""
        at = (key, (media_type, coding))
        body = self._forms.get(at)
        if body is not None:
            self._forms.move_to_end(at)
            return body
        return self._pinned.get(at)

    def holds(self, key: DocumentKey) -> bool:
        """Whether any form of the document is in memory."""
        return key in self._of

    def put(
        self, key: DocumentKey, media_type: MediaType, coding: Coding, body: bytes, *, pin: bool = False
    ) -> None:
        """Keep these bytes; ``pin`` if nothing could supply them again."""
        at = (key, (media_type, coding))
        if at in self._pinned:
            return
        if (held := self._forms.get(at)) is not None:
            if not pin:
                return
            del self._forms[at]
            self._bytes -= len(held)
        self._of.setdefault(key, {})[at[1]] = None
        if pin:
            self._pinned[at] = body
            self._pinned_bytes += len(body)
        else:
            self._forms[at] = body
            self._bytes += len(body)
        self._evictions += self._shrink(to=self._max_bytes, keep=at)

    @property
    def is_half_full(self) -> bool:
        """Whether more than half of the budget that pinned forms leave is used."""
        return 2 * self._bytes > self._max_bytes - self._pinned_bytes

    def shed(self) -> int:
        """Drop half of what is not pinned because memory is short; returns the number of dropped forms."""
        shed = self._shrink(to=self._pinned_bytes + self._bytes // 2)
        self._sheddings += shed
        return shed

    def refuse(self, key: DocumentKey, media_type: MediaType, reason: str) -> None:
        """Remember that this document has no form in that media type."""
        self._refused[key, media_type] = reason

    def refusal_of(self, key: DocumentKey, media_type: MediaType) -> str | None:
        return self._refused.get((key, media_type))

    @property
    def has_refusals(self) -> bool:
        return bool(self._refused)

    def keep_only(self, keys: Collection[DocumentKey]) -> None:
        """Drop every document not among ``keys``: superseded, or its backend is gone."""
        for key in [key for key in self._of if key not in keys]:
            self._drop(key)
        for at in [at for at in self._refused if at[0] not in keys]:
            del self._refused[at]

    def usage(self) -> Usage:
        return Usage(
            bytes=self._bytes + self._pinned_bytes,
            pinned_bytes=self._pinned_bytes,
            documents=len(self._of),
            forms=len(self._forms) + len(self._pinned),
            evictions=self._evictions,
            sheddings=self._sheddings,
        )

    def _drop(self, key: DocumentKey) -> None:
        for form in self._of.pop(key):
            at = (key, form)
            if (body := self._forms.pop(at, None)) is not None:
                self._bytes -= len(body)
            elif (body := self._pinned.pop(at, None)) is not None:
                self._pinned_bytes -= len(body)

    def _shrink(self, *, to: int, keep: tuple[DocumentKey, Form] | None = None) -> int:
        """Evict until at most ``to`` bytes are left: first identity forms that a compressed one can restore,
        then any; returns how many were evicted."""
        if self._bytes + self._pinned_bytes <= to:
            return 0
        before = len(self._forms)
        for only_rebuildable in (True, False):
            for at in list(self._forms):
                if self._bytes + self._pinned_bytes <= to:
                    break
                if at != keep and (not only_rebuildable or self._has_compressed(at)):
                    self._evict(at)
        evicted = before - len(self._forms)
        self.evicting_rounds += evicted > 0
        return evicted

    def _has_compressed(self, at: tuple[DocumentKey, Form]) -> bool:
        key, (media_type, coding) = at
        return coding is Coding.IDENTITY and any(
            (key, (media_type, other)) in store
            for other in (Coding.GZIP, Coding.ZSTD)
            for store in (self._forms, self._pinned)
        )

    def _evict(self, at: tuple[DocumentKey, Form]) -> None:
        body = self._forms.pop(at)
        self._bytes -= len(body)
        key, form = at
        forms = self._of[key]
        del forms[form]
        if not forms:
            del self._of[key]
