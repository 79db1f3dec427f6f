"""Field paths as people write them: ``spec.containers[0].image``, ``$.metadata.labels["a.b/c"]``.

Indices of lists and keys of maps are optional: all elements have one schema. And names similar to a
misspelled one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern
from specmux_tools.errors import InvalidPath

MOST_STEPS: Final = 64
MOST_CHARACTERS: Final = 4096

_STEP: Final = pattern(
    r"""\.?(?P<name>(?:[^.\[\]\\]|\\.)+)     # a name; a dot in it after a backslash
      | \.?\[(?P<element>[0-9]*|\*)\]        # any element
      | \.?\[(?P<quote>["'])(?P<key>(?:(?!(?P=quote)).)*)(?P=quote)\]   # a name or key, in quotes
    """,
    re.VERBOSE,
)
SIMILAR_MAX: Final = 3
_COMPARED: Final = 5000
"""Most names compared, to bound the cost of a request."""
_LEAST: Final = 0.5


@dataclass(frozen=True, slots=True)
class Step:
    """One field, or one key of a map."""

    name: str
    is_quoted: bool = False
    """Written in brackets, so it may be a map's key."""


def parse(text: str) -> tuple[Step, ...]:
    """Parses the path ``text``. Raises InvalidPath with the position."""
    if len(text) > MOST_CHARACTERS:
        raise InvalidPath(f"a path of {len(text)} characters; {MOST_CHARACTERS} are allowed")
    position = 1 if text.startswith("$") and text[1:2] in ("", ".", "[") else 0
    end = len(text) - text.endswith(".")
    steps: list[Step] = []
    while position < end:
        match = _STEP.match(text, position, end)
        if match is None:
            raise InvalidPath(
                f"{text!r} is no path of fields: unexpected {text[position]!r} at {position + 1}"
            )
        if match["name"] is not None:
            steps.append(Step(re.sub(r"\\(.)", r"\1", match["name"])))
        elif match["key"] is not None:
            steps.append(Step(match["key"], is_quoted=True))
        position = match.end()
    if len(steps) > MOST_STEPS:
        raise InvalidPath(f"a path of {len(steps)} fields; {MOST_STEPS} are allowed")
    return tuple(steps)


def format_path(names: tuple[str, ...]) -> str:
    """Formats a path so that ``parse`` reads it."""
    text = ""
    for name in names:
        if re.search(r"[.\[\]\\]", name) or not name:
            quote = "'" if '"' in name else '"'
            text += f"[{quote}{name}{quote}]"
        else:
            text += f".{name}" if text else name
    return text


def similar_to(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """At most three of the names, closest first, ignoring case."""
    from difflib import SequenceMatcher  # needed only for a mistake

    matcher = SequenceMatcher(b=name.casefold()[:100], autojunk=False)
    rated = []
    for _, other in zip(range(_COMPARED), dict.fromkeys(names), strict=False):
        matcher.set_seq1(other.casefold()[:100])
        if matcher.real_quick_ratio() >= _LEAST and matcher.quick_ratio() >= _LEAST:
            rated.append((-matcher.ratio(), other))
    return tuple(other for rating, other in sorted(rated)[:SIMILAR_MAX] if -rating >= _LEAST)
