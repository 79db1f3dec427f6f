"""JSON as Kubernetes' decoder reads it (sigs.k8s.io/json): equal keys seen, integers kept, Go's errors.

A value is plain JSON, but for objects in which a key came twice (``Repeats``), and numbers and texts whose
spelling matters (``Number``, ``EscapedText``).
"""

from __future__ import annotations

import json
import re
from json import decoder as json_decoder
from json import scanner as json_scanner
from typing import Any, Final

import orjson

from specmux_converters.go.text import INT64_MAX, Number
from specmux_converters.json_text import count_strings
from specmux_converters.lazy.patterns import pattern
from specmux_tools.validation.decoding.json_syntax import syntax_error
from specmux_tools.validation.errors import Undecodable

MOST_DEPTH: Final = 200
"""Containers in each other: the checks recurse. An apiserver goes to 10,000."""

_INT64_DIGITS: Final = 18
_SURROGATE: Final = pattern(r"\\u[dD][89a-fA-F]")
_ESCAPES: Final = pattern(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""Pairs of surrogates, lone ones, and all else that a backslash begins."""


class Repeats(dict[str, Any]):
    """An object in which a key came more than once; the dict has the last of each, where its first was."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs
        """Keys and values as they were written."""


class EscapedText(str):
    """A text that was written with an escape: Quantity.UnmarshalJSON reads the bytes between the quotes."""

    __slots__ = ("written",)

    written: str


def pairs_of(value: dict[str, Any]) -> list[tuple[str, Any]] | Any:
    """Keys and values as they were written, repeated ones included."""
    return value.pairs if type(value) is Repeats else value.items()


def read_plain(data: bytes) -> Any:
    """The value of a text without equal keys and unusual numbers, by the fastest parser.

    None where the text may have them, or is none: ``read_json`` says which.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if type(value) is not dict or _UNUSUAL.search(data) or _NEEDLESS_ESCAPE.search(data):
        return None
    try:
        written = orjson.dumps(value)
    except orjson.JSONEncodeError:
        return None
    if len(written) != len(data) and count_strings(data) != count_strings(written):
        return None
    return value if _is_shallow(value) else None


_UNUSUAL: Final = pattern(rb"[0-9][eE][-+0-9]|[0-9]{19}")
_NEEDLESS_ESCAPE: Final = pattern(rb"\\u00(?:2[0bBdDeE]|3[0-9]|[46][0-9a-fA-F]|[57][0-9aA])")
"""An escaped character that a quantity may have. Others are no quantity, however they are written."""


def _is_shallow(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_DEPTH + 1):
        level = [
            inner
            for each in level
            if each
            for inner in (each.values() if isinstance(each, dict) else each)
            if type(inner) is list or isinstance(inner, dict)
        ]
        if not level:
            return True
    return False


def read_json(data: bytes) -> Any:
    """Raises Undecodable with Go's words for what is not JSON, with ours for what is too deep."""
    text = data.decode("utf-8", "replace")
    if _SURROGATE.search(text):
        text = _ESCAPES.sub(_without_lone_surrogate, text)
    decoder = _ESCAPES_DECODER if _NEEDLESS_ESCAPE.search(data) else JSON_DECODER
    try:
        value = decoder.decode(text)
    except (ValueError, RecursionError) as error:
        found = syntax_error(data)
        if found is not None:
            raise Undecodable(found[0], offset=found[1]) from error
        raise Undecodable(f"nested more than {MOST_DEPTH} deep") from error
    if not _is_shallow(value):
        raise Undecodable(f"nested more than {MOST_DEPTH} deep")
    return value


def _without_lone_surrogate(escape: re.Match[str]) -> str:
    """Go reads U+FFFD in its place (encoding/json, decode.go: unquoteBytes)."""
    return "\\ufffd" if escape["lone"] else escape[0]


_read_text: Final[Any] = vars(json_decoder)["scanstring"]
_make_scanner: Final[Any] = vars(json_scanner)["py_make_scanner"]
"""Not in typeshed."""


def _text(text: str, begin: int, strict: bool) -> tuple[str, int]:
    value, end = _read_text(text, begin, strict)
    written = text[begin : end - 1]
    if "\\" in written:
        value = EscapedText(value)
        value.written = written
    return value, end


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    return value if len(value) == len(pairs) else Repeats(pairs)


def _integer(text: str) -> int | Number:
    if len(text) <= _INT64_DIGITS:
        return int(text) if text != "-0" else Number(text)
    if len(text) > _INT64_DIGITS + 2:
        return Number(text)
    number = int(text)
    return number if -INT64_MAX - 1 <= number <= INT64_MAX else Number(text)


def _constant(text: str) -> Any:
    raise ValueError(text)


class _EscapesDecoder(json.JSONDecoder):
    """Tells texts with escapes. Python's own scanner, since the one in C takes no reader of texts."""

    def __init__(self, **hooks: Any) -> None:
        super().__init__(**hooks)
        self.parse_string = _text
        self.scan_once = _make_scanner(self)


_HOOKS: Final[dict[str, Any]] = {
    "object_pairs_hook": _object,
    "parse_float": Number,
    "parse_int": _integer,
    "parse_constant": _constant,
}
JSON_DECODER: Final = json.JSONDecoder(**_HOOKS)
_ESCAPES_DECODER: Final = _EscapesDecoder(**_HOOKS)
