"""The place of a walk through the input, what it records, and its remaining budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, Final, NoReturn, Self

from specmux_converters.document import Document, Limits, canonical
from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import Grade, Loss, Steps, pointer_to

FREE_BYTES: Final = 32 * 1024 * 1024
"""Bytes that any document may expand to, however small it is."""

EXPANSION: Final = 8
"""Multiple of its own size that a larger one may expand to. Releases of Kubernetes expand two and a half
times."""


LOSS_COST: Final = 256
"""Bytes that a loss takes beside its pointer: each is an object with its own strings."""


@dataclass(slots=True)
class OutputBudget:
    """Bytes by which the output of a conversion, including losses, may still exceed the input.

    An expanded reference, a schema under many media types, a component in many documents: each multiplies the
    input, and a small hostile document could demand terabytes.
    """

    left: int = Limits().max_expanded_bytes
    steps: Steps = field(default_factory=Steps)
    """The path to the node being converted, for pointers of losses."""
    more: Callable[[], int] | None = None
    """Additional budget, computed once when needed, since that reads the whole input."""

    def spend(self, cost: int, *tokens: str | int) -> None:
        self.left -= cost
        if self.left < 0 and self.more is not None:
            self.left += self.more()
            self.more = None
        if self.left < 0:
            raise LimitExceeded("the converted documents would be too large", pointer=pointer_to(*tokens))

    @classmethod
    def of(cls, document: Document, limits: Limits) -> Self:
        """``EXPANSION`` times the document beyond the free bytes, within the limits."""
        left = min(FREE_BYTES, limits.max_expanded_bytes)
        rest = limits.max_expanded_bytes - left
        return cls(left, more=lambda: min(rest, EXPANSION * len(canonical(document))))


@dataclass(slots=True)
class Trace:
    """The place of a walk and its records.

    ``refs``: the components that the result refers to ("schemas/Pod"), the edges for pruning. ``foreign``:
    references to places that are not shared objects; a result with any depends on more than its text and must
    not be reused. Fields have no defaults, since handling them would double the cost per part and text.
    """

    path: list[str | int]
    losses: list[Loss]
    refs: set[str]
    foreign: list[str]
    budget: OutputBudget

    @classmethod
    def begin(cls, path: list[str | int], budget: OutputBudget) -> Trace:
        """A trace without records."""
        return cls(path, [], set(), [], budget)

    def at(self, path: list[str | int]) -> Trace:
        """A trace at another place with the same records."""
        return Trace(path, self.losses, self.refs, self.foreign, self.budget)

    def take(self, notes: Trace) -> None:
        """Add the records of another walk whose result is used here as well."""
        if notes.losses:
            self.losses += notes.losses
        if notes.refs:
            self.refs |= notes.refs
        if notes.foreign:
            self.foreign += notes.foreign

    def pointer(self, *tokens: str | int) -> str:
        return pointer_to(*self.path, *tokens)

    def lose(self, construct: str, reason: str, *tokens: str | int) -> None:
        """Report something that the result lacks."""
        self._report(construct, reason, Grade.LOSS, tokens)

    def note(self, construct: str, reason: str, *tokens: str | int) -> None:
        """Report something that the result expresses differently, or that was meaningless."""
        self._report(construct, reason, Grade.NOTE, tokens)

    def _report(self, construct: str, reason: str, grade: Grade, tokens: tuple[str | int, ...]) -> None:
        budget = self.budget
        pointer = "".join(map(budget.steps.__getitem__, (*self.path, *tokens)))
        budget.left -= len(pointer) + LOSS_COST
        if budget.left < 0:
            budget.spend(0, *self.path)
        # Loss() without a call of Python code: Kubernetes' operations lose something each.
        self.losses.append(tuple.__new__(Loss, (pointer, construct, reason, grade)))

    def refuse(self, reason: str, *tokens: str | int) -> NoReturn:
        raise InvalidDocument(reason, pointer=self.pointer(*tokens))

    def spend(self, cost: int) -> None:
        self.budget.spend(cost, *self.path)

    def keep_unknown(self, key: str, value: Any, result: dict[str, Any]) -> None:
        """Keep a field that OpenAPI 3.0 does not have there as an extension, and report it."""
        self.lose(f"field {key}", f"OpenAPI 3.0 has no such field here; kept as x-{key}", key)
        result.setdefault(f"x-{key}", value)

    def keep_mistyped(self, key: str, value: Any, wanted: str, result: dict[str, Any]) -> None:
        """Keep a keyword with a value of the wrong type as an extension; the rest of its schema is
        unaffected."""
        self.lose("keyword of another type", f"{wanted} is required; kept as x-{key}", key)
        result.setdefault(f"x-{key}", value)
