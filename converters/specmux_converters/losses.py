"""A Loss is one thing that a conversion could not carry over, or says in another way. Nothing is dropped in
silence."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple
from urllib.parse import unquote


class Grade(StrEnum):
    """How much a reader of the result has to know of it."""

    NOTE = "note"
    """Nothing is missing: it said nothing to whoever reads the result, or stands there in another way."""
    LOSS = "loss"
    """The result does not say something that the input did."""

    __hash__ = str.__hash__  # Enum's is in Python, and a release has a thousand notes


class Loss(NamedTuple):
    """One construct of the input that the output does not state, or states in another way.

    ``pointer`` is the JSON pointer (RFC 6901) into the *input*.
    """

    pointer: str
    construct: str
    reason: str
    grade: Grade = Grade.LOSS


class Steps(dict[str | int, str]):
    """What each token adds to a pointer, escaped when it is first asked for: pointers into one document share
    most of their tokens."""

    def __missing__(self, token: str | int) -> str:
        step = self[token] = _step(token)
        return step


def pointer_to(*tokens: str | int) -> str:
    """The JSON pointer of a path of keys and indexes, each escaped."""
    return "".join(map(_step, tokens))


def unescape(token: str) -> str:
    """A token as the key that it stands for."""
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token


def tokens_of(ref: str) -> list[str]:
    """The path of a local reference: a JSON pointer (RFC 6901) in a URI fragment."""
    tokens = ref.removeprefix("#").split("/")[1:]
    return tokens if "%" not in ref and "~" not in ref else [unescape(unquote(token)) for token in tokens]


def _step(token: str | int) -> str:
    return "/" + str(token).replace("~", "~0").replace("/", "~1")
