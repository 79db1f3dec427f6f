"""Where a walk through the input stands, what it met on the way, and what it may still cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, Final, NoReturn, Self

from specmux_converters.deferred_dataclasses import dataclass
from specmux_converters.document import Document, Limits
from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.losses import Grade, Loss, Steps, pointer_to
from specmux_converters.swagger2.reading.encoding import encode

FREE_BYTES: Final = 32 * 1024 * 1024
"""What any document may become, however small it is."""

EXPANSION: Final = 8
"""What a larger one may, in times its own size. Releases of Kubernetes become two and a half times theirs."""


LOSS_COST: Final = 256
"""Bytes that a loss takes beside its pointer: each is an object with texts of its own."""


@dataclass(slots=True)
class OutputBudget:
    """Bytes that the output of one conversion, its losses included, may still grow by beyond the input.

    A reference that is written out, a schema under many media types, a component in many documents: each
    multiplies the input, and a small hostile document could ask for terabytes.
    """

    left: int = Limits().max_expanded_bytes
    steps: Steps = field(default_factory=Steps)
    """For the pointers of losses."""
    more: Callable[[], int] | None = None
    """What else there is to spend, asked for once and when it is needed: it reads the whole input."""

    def spend(self, cost: int, *tokens: str | int) -> None:
        self.left -= cost
        if self.left < 0 and self.more is not None:
            self.left += self.more()
            self.more = None
        if self.left < 0:
            raise LimitExceeded("the converted documents would be too large", pointer=pointer_to(*tokens))

    @classmethod
    def of(cls, document: Document, limits: Limits) -> Self:
        """``EXPANSION`` times the document beyond what any may cost, and no more than the limits allow."""
        left = min(FREE_BYTES, limits.max_expanded_bytes)
        rest = limits.max_expanded_bytes - left
        return cls(left, more=lambda: min(rest, EXPANSION * len(encode(document))))


@dataclass(slots=True)
class Trace:
    """The place of a walk and its notes.

    ``refs`` names the components that the result refers to ("schemas/Pod"): the edges that pruning follows.
    ``foreign`` lists references to places that are no shared object: a result that has any depends on more
    than its own text, and may not be kept for an equal one. No field has a default: to see whether one is
    given takes as long again, for each part and each text.
    """

    path: list[str | int]
    losses: list[Loss]
    refs: set[str]
    foreign: list[str]
    budget: OutputBudget

    @classmethod
    def begin(cls, path: list[str | int], budget: OutputBudget) -> Trace:
        """One without notes."""
        return cls(path, [], set(), [], budget)

    def at(self, path: list[str | int]) -> Trace:
        """A trace that stands elsewhere and takes the same notes."""
        return Trace(path, self.losses, self.refs, self.foreign, self.budget)

    def take(self, notes: Trace) -> None:
        """Adds what was noted on another walk whose result is used here too."""
        if notes.losses:
            self.losses += notes.losses
        if notes.refs:
            self.refs |= notes.refs
        if notes.foreign:
            self.foreign += notes.foreign

    def pointer(self, *tokens: str | int) -> str:
        return pointer_to(*self.path, *tokens)

    def lose(self, construct: str, reason: str, *tokens: str | int) -> None:
        """Reports what the result does not say."""
        self._report(construct, reason, Grade.LOSS, tokens)

    def note(self, construct: str, reason: str, *tokens: str | int) -> None:
        """Reports what the result says in another way, or what said nothing."""
        self._report(construct, reason, Grade.NOTE, tokens)

    def _report(self, construct: str, reason: str, grade: Grade, tokens: tuple[str | int, ...]) -> None:
        budget = self.budget
        pointer = "".join(map(budget.steps.__getitem__, (*self.path, *tokens)))
        budget.left -= len(pointer) + LOSS_COST
        if budget.left < 0:
            budget.spend(0, *self.path)
        # What Loss() does, without a call of Python code: Kubernetes' operations lose something each.
        self.losses.append(tuple.__new__(Loss, (pointer, construct, reason, grade)))

    def refuse(self, reason: str, *tokens: str | int) -> NoReturn:
        raise InvalidDocument(reason, pointer=self.pointer(*tokens))

    def spend(self, cost: int) -> None:
        self.budget.spend(cost, *self.path)

    def keep_unknown(self, key: str, value: Any, result: dict[str, Any]) -> None:
        """A field that OpenAPI 3.0 does not have there stays readable as an extension, and is reported."""
        self.lose(f"field {key}", f"OpenAPI 3.0 has no such field here; kept as x-{key}", key)
        result.setdefault(f"x-{key}", value)

    def keep_mistyped(self, key: str, value: Any, wanted: str, result: dict[str, Any]) -> None:
        """A keyword whose value is of another type says nothing; the rest of its schema stands."""
        self.lose("keyword of another type", f"{wanted} is required; kept as x-{key}", key)
        result.setdefault(f"x-{key}", value)
