"""Serialize JSON values as go-yaml v3 does: the text of gnostic's ``Any{yaml}``.

Block style, four columns, no folding. The rules are those of go-yaml's encode.go and emitterc.go, including
oddities, since the result is compared byte for byte: a nested sequence is indented by two while everything
else advances to the next multiple of four, and the indentation hint of a literal is always 4.
"""

from __future__ import annotations

import re
from typing import Any, Final

from specmux_converters.go.scalars import UINT64_MAX, is_plain_string
from specmux_converters.go.text import INT64_MAX, float_text
from specmux_converters.lazy.dataclasses import dataclass

_STEP: Final = 4
_SIMPLE_KEY_MAX: Final = 128
"""Bytes; a longer key, or one with a line break, is written as an explicit key ("? ")."""

# is_printable of yamlprivateh.go counts bytes of UTF-8: it treats everything beyond U+FFFF as "special".
_SPECIAL: Final = re.compile("[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]")
_ESCAPED: Final = re.compile('["\\\\\u2028\u2029]|[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]')
_ANY: Final = re.compile(".", re.DOTALL)
_BREAKS: Final = "\n\r\x85\u2028\u2029"
_BREAK: Final = re.compile(f"[{_BREAKS}]")
_TAB_OR_BREAK: Final = re.compile(f"[\t{_BREAKS}]")
_SPACE_BREAK: Final = re.compile(f" [{_BREAKS}]")
_BREAK_SPACE: Final = re.compile(f"[{_BREAKS}] ")
_BREAK_TEXT: Final = re.compile(f"([{_BREAKS}])(?=[^{_BREAKS}])")
_INDICATORS: Final = re.compile(
    r"---|\.\.\.|[#,\[\]{}&*!|>'\"%@`]|[?:](?:[ \t]|\Z)|-(?:[ \t]|\Z)"  # at the start
    rf"|.*(?::(?:[ \t]|\Z)|[ \t{_BREAKS}\0]#)",  # anywhere
    re.DOTALL,
)
_SIMPLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./]*(?:[ :-][A-Za-z0-9_./]+)*", re.ASCII)
"""Texts that certainly need no quotes: a shortcut for nearly all."""
_WORDS: Final = frozenset(("true", "True", "TRUE", "false", "False", "FALSE", "null", "Null", "NULL"))
_ESCAPES: Final = {
    "\0": "0", "\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", "\x1b": "e",
    '"': '"', "\\": "\\", "\x85": "N", "\xa0": "_", "\u2028": "L", "\u2029": "P",
}  # fmt: skip


def write_yaml(value: Any) -> str:
    """The YAML document of one value, including the final line break. Raises TypeError for values that are
    not JSON."""
    out: list[str] = []
    _node(value, out, _Place("", "", 0, _STEP))
    return "".join(out)


@dataclass(frozen=True, slots=True)
class _Place:
    """The place where a value is written."""

    lead: str
    """The text before it on the line of its indicator."""
    first: str
    """The same for the first entry of a block collection, which may start on its own line."""
    indent: int
    """Columns before the entries of a block collection."""
    literal: int
    """Columns before the lines of a literal."""


def _node(value: Any, out: list[str], at: _Place) -> None:
    """Append ``value``, from behind its indicator to the end of its last line."""
    if type(value) is str:
        out.append(at.lead + _string(value, at.literal))
    elif type(value) is dict and value:
        _mapping(value, out, at)
    elif type(value) is list and value:
        _sequence(value, out, at)
    else:
        out.append(f"{at.lead}{scalar_text(value)}\n")


def _mapping(value: dict[str, Any], out: list[str], at: _Place) -> None:
    margin = " " * at.indent
    inner = _STEP * (at.indent // _STEP + 1)
    simple = _Place(" ", "\n" + " " * inner, inner, inner)
    explicit = _Place(" ", " " * (inner - at.indent - 1), inner, inner)
    before = at.first
    for key, item in value.items():
        if (len(key) > _SIMPLE_KEY_MAX // 4 and len(key.encode()) > _SIMPLE_KEY_MAX) or _BREAK.search(key):
            out.append(f"{before}? {_string(key, inner)}{margin}:")
            _node(item, out, explicit)
        else:
            out.append(f"{before}{_inline(key)}:")
            _node(item, out, simple)
        before = margin


def _sequence(value: list[Any], out: list[str], at: _Place) -> None:
    margin = " " * at.indent
    place = _Place(" ", " ", at.indent + 2, at.indent + 2)
    before = at.first
    for item in value:
        out.append(before + "-")
        _node(item, out, place)
        before = margin


def scalar_text(value: Any) -> str:
    """The text of a value other than a string or a filled collection. Raises TypeError."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if type(value) is int and -INT64_MAX - 1 <= value <= UINT64_MAX:
        return str(value)
    if type(value) is float:
        return _float(value)
    if value == {} and isinstance(value, dict):
        return "{}"
    if value == [] and isinstance(value, list):
        return "[]"
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _float(value: float) -> str:
    """A float in its most likely original spelling, which go-yaml keeps and a parsed document lacks.

    Very large and very small ones as written by Go's encoding/json ("1e+21", "1e-7"), whole numbers beyond 64
    bits without a point; "1.0" has its point, since "1" would be an integer.
    """
    if value - value != 0:
        raise TypeError("a number that is not finite is not a JSON value")
    text = float_text(value)
    is_beyond_integers = value >= 2**64 or value <= -(2**63)
    return text if "." in text or "e" in text or is_beyond_integers else f"{text}.0"


def _string(text: str, indent: int) -> str:
    """A string that may take several lines, including the end of the last one."""
    if _SIMPLE.fullmatch(text) and text not in _WORDS:
        return text + "\n"
    if not _BREAK.search(text) or _SPECIAL.search(text) or _SPACE_BREAK.search(text):
        return _inline(text) + "\n"
    if "\n" in text:
        return _literal(text, indent) if text[-1] != " " else _quote_doubly(text) + "\n"
    if "\t" in text or _BREAK_SPACE.search(text) or not is_plain_string(text):
        return _quote_doubly(text) + "\n"
    return _quote_singly(_BREAK_TEXT.sub("\\1" + " " * indent, text)) + "\n"


def _inline(text: str) -> str:
    """A string on one line: plain if possible, else quoted."""
    if not text or _SPECIAL.search(text) or _TAB_OR_BREAK.search(text) or not is_plain_string(text):
        return _quote_doubly(text)
    if text[0] == " " or text[-1] == " " or _INDICATORS.match(text):
        return _quote_singly(text)
    return text


def _quote_singly(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quote_doubly(text: str) -> str:
    # is_bom of yamlprivateh.go checks the start of the text, whatever the position of the emitter.
    escaped = _ANY if text.startswith("\ufeff") else _ESCAPED
    return '"' + escaped.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    short = _ESCAPES.get(char)
    if short is not None:
        return "\\" + short
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _literal(text: str, indent: int) -> str:
    hint = str(_STEP) if text[0] in " " + _BREAKS else ""
    if text[-1] not in _BREAKS:
        chomp = "-"
    elif len(text) == 1 or text[-2] in _BREAKS:
        chomp = "+"
    else:
        chomp = ""
    margin = " " * indent
    body = _BREAK_TEXT.sub("\\1" + margin, text)
    if text[0] not in _BREAKS:
        body = margin + body
    return f"|{hint}{chomp}\n{body}" + ("" if text[-1] in _BREAKS else "\n")
