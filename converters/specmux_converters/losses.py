"""A Loss is something that a conversion could not carry over, or expresses differently. Nothing is dropped
silently."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple
from urllib.parse import unquote


class Grade(StrEnum):
    """The importance of a loss to a reader of the result."""

    NOTE = "note"
    """Nothing is missing: it was meaningless for readers of the result, or is expressed differently."""
    LOSS = "loss"
    """The result lacks something that the input stated."""

    __hash__ = str.__hash__  # Enum's is implemented in Python, and a release has a thousand notes


class Loss(NamedTuple):
    """A construct of the input that the output omits or expresses differently.

    ``pointer``: the JSON pointer (RFC 6901) into the *input*.
    """

    pointer: str
    construct: str
    reason: str
    grade: Grade = Grade.LOSS


class Steps(dict[str | int, str]):
    """The escaped form of each token of a pointer, cached: pointers into one document share most tokens."""

    def __missing__(self, token: str | int) -> str:
        step = self[token] = _step(token)
        return step


def pointer_to(*tokens: str | int) -> str:
    """The JSON pointer of a path of keys and indexes, each escaped."""
    return "".join(map(_step, tokens))


def unescape(token: str) -> str:
    """The key for which a token stands."""
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token


def tokens_of(ref: str) -> list[str]:
    """The path of a local reference: a JSON pointer (RFC 6901) in a URI fragment."""
    tokens = ref.removeprefix("#").split("/")[1:]
    return tokens if "%" not in ref and "~" not in ref else [unescape(unquote(token)) for token in tokens]


def _step(token: str | int) -> str:
    return "/" + str(token).replace("~", "~0").replace("/", "~1")
