"""The words of names, descriptions and queries: lower case; names whole and in parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from specmux_converters.lazy.patterns import pattern
from specmux_tools.errors import InvalidPath

MOST_CHARACTERS: Final = 200
MOST_WORDS: Final = 8

_PART: Final = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WORD: Final = pattern(r"[a-z][a-z0-9]+")
_ASKED: Final = pattern(r"[^\W_]+")

STOP_WORDS: Final = frozenset(
    "the of to a an is be in for and or that this it if by on are as with will not can which from at when "  # noqa: SIM905
    "may must has have any all was been its used use than then should only more".split()
)
"""Frequent words of descriptions, useless for searching."""


_OF_QUESTIONS: Final = frozenset(
    "how do does did what why who i me my we our you your want need there".split()  # noqa: SIM905
)


def of_name(name: str) -> frozenset[str]:
    """``clusterIPs`` yields clusterips, cluster, ips."""
    return frozenset((name.casefold(), *map(str.casefold, _PART.findall(name))))


def of_description(text: str) -> Iterator[str]:
    return (word for word in set(_WORD.findall(text.lower())) if word not in STOP_WORDS)


def mark_words(text: str, query: str) -> Iterator[tuple[str, bool]]:
    """The parts of a text, each with whether it is a word's beginning that the query asks for."""
    wanted = "|".join(sorted(_ASKED.findall(query.casefold()), key=len, reverse=True))
    end = 0
    for hit in re.finditer(wanted, text, re.IGNORECASE) if wanted else ():
        before, first = text[max(0, hit.start() - 1) : hit.start()], text[hit.start()]
        if not before.isalnum() or (first.isupper() and not before.isupper()):
            yield text[end : hit.start()], False
            yield hit[0], True
            end = hit.end()
    yield text[end:], False


def query_words(query: str) -> tuple[str, ...]:
    """The words of a query; frequent ones are left out if there are others.

    Raises InvalidPath beyond the limits, or without any word.
    """
    if len(query) > MOST_CHARACTERS:
        raise InvalidPath(f"{len(query)} characters; {MOST_CHARACTERS} are allowed")
    words = tuple(dict.fromkeys(_ASKED.findall(query.casefold())))
    if not words:
        raise InvalidPath("no word to search for")
    said = tuple(word for word in words if word not in STOP_WORDS and word not in _OF_QUESTIONS) or words
    if len(said) > MOST_WORDS:
        raise InvalidPath(f"{len(said)} words; {MOST_WORDS} are allowed")
    return said
