"""What a conversion could not carry over, said place by place: nothing is dropped in silence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from specmux_converters.errors import InvalidDocument


@dataclass(frozen=True, slots=True, order=True)
class Loss:
    """One construct of the input that the output does not state, or states in another way.

    ``pointer`` is the JSON pointer (RFC 6901) into the *input*.
    """

    pointer: str
    construct: str
    reason: str


def pointer_to(*tokens: str | int) -> str:
    """The JSON pointer of a path of keys and indexes, each escaped."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


@dataclass(slots=True)
class Trace:
    """Where a walk stands in the input, and what it met on the way.

    ``refs`` are the v3 references written so far: the edges that pruning follows. ``is_local`` stays true
    while the result depends on the walked value alone, and may therefore be kept for an equal one.
    """

    path: list[str | int] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    refs: set[str] = field(default_factory=set)
    is_local: bool = True

    def pointer(self, *tokens: str | int) -> str:
        return pointer_to(*self.path, *tokens)

    def lose(self, construct: str, reason: str, *tokens: str | int) -> None:
        self.losses.append(Loss(self.pointer(*tokens), construct, reason))

    def refuse(self, reason: str, *tokens: str | int) -> NoReturn:
        raise InvalidDocument(reason, pointer=self.pointer(*tokens))
