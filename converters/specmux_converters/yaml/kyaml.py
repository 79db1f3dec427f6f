"""YAML text as KYAML (KEP-5295): flow style, strings in double quotes, comments at the ends of lines kept.

As sigs.k8s.io/yaml/kyaml writes it, which is what kubectl does with ``-o kyaml``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final

import yaml

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXTS: Final = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp")
_INDENT: Final = "  "
_FOLD: Final = "\\\n"

_WORDS: Final = frozenset(
    (
        *("", "~", "null", "true", "false", "y", "n", "yes", "no", "on", "off", "t", "f"),
        *(
            ".inf",
            "-.inf",
            "+.inf",
            ".nan",
            "inf",
            "+inf",
            "-inf",
            "infinity",
            "+infinity",
            "-infinity",
            "nan",
        ),
    )
)
"""What is no string without quotes, in any case."""
_NUMBER: Final = re.compile(
    r"[+-]?(?:0[bB][01]+|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|[+-]?[1-9][0-9]*(?::[0-5]?[0-9])+(?:\.[0-9]*)?"
)
_TIME: Final = r"[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]+)?"
_TIMESTAMP: Final = re.compile(
    rf"[0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}(?:[Tt]{_TIME}(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})| {_TIME})?"
)
_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n" + _FOLD,
    "\t": "\t",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\r": "\\r",
    "\v": "\\v",
    "\0": "\\0",
    "\x1b": "\\e",
    "\x85": "\\N",
    "\xa0": "\\_",
    "\u2028": "\\L",
    "\u2029": "\\P",
}


def to_kyaml(text: str) -> str:
    """One document, with its header. Comments that stand on lines of their own are dropped."""
    node = yaml.compose(text, Loader=_LOADER)
    lines = text.splitlines()
    return f"---\n{_written(node, 0, lines)}\n"


def _written(node: Any, level: int, lines: list[str]) -> str:
    if isinstance(node, yaml.MappingNode):
        inner = "".join(_entries(node, level + 1, lines))
        return f"{{\n{inner}{_INDENT * level}}}" if inner else "{}"
    if isinstance(node, yaml.SequenceNode):
        return _sequence(node.value, level, lines)
    return _quoted(node.value, level + 1) if node.tag in _TEXTS else str(node.value)


def _sequence(items: list[Any], level: int, lines: list[str]) -> str:
    if not items:
        return "[]"
    if not any(isinstance(item, yaml.ScalarNode) for item in items):
        return f"[{', '.join(_written(item, level, lines) for item in items)}]"
    pad = _INDENT * (level + 1)
    inner = "".join(f"{pad}{_written(item, level + 1, lines)},\n" for item in items)
    return f"[\n{inner}{_INDENT * level}]"


def _entries(node: Any, level: int, lines: list[str]) -> Iterator[str]:
    for key, value in node.value:
        comment = _comment(key, value, lines)
        beside = f" {comment}" if comment else ""
        yield f"{_INDENT * level}{_key(key.value)}: {_written(value, level, lines)},{beside}\n"


def _comment(key: Any, value: Any, lines: list[str]) -> str:
    """Behind the value, or behind the key of a value that begins below it."""
    line, end = key.start_mark.line, key.end_mark.column + 1
    if value.start_mark.line == line and value.end_mark.line == line:
        end = value.end_mark.column
    rest = lines[line][end:].strip()
    return rest if rest.startswith("#") else ""


def _key(name: str) -> str:
    return _quoted(name, 0, is_folded=False) if _needs_quotes(name) else name


def _needs_quotes(name: str) -> bool:
    plain = name.replace("_", "")
    if name.lower() in _WORDS or _NUMBER.fullmatch(plain) or _TIMESTAMP.fullmatch(name):
        return True
    last = len(name) - 1
    return not all(
        character == "_"
        or unicodedata.category(character)[0] in "LN"
        or (0 < index < last and character in "-./")
        for index, character in enumerate(name)
    )


def _quoted(text: str, level: int, *, is_folded: bool = True) -> str:
    """Lines of a text stand below each other, folded; ``level`` is that of these lines."""
    is_multiline = is_folded and "\n" in text
    parts = ['"', _FOLD] if is_multiline else ['"']
    begins = is_multiline
    for character in text:
        escaped = _escaped(character)
        if begins:
            # White space before the first other character of a line is ignored. Upstream also puts a
            # backslash before white space that it escapes, which readers take for two backslashes.
            parts += [_INDENT * level, "\\" if escaped in (" ", "\t") else " "]
        parts.append(escaped if is_folded else escaped.removesuffix(_FOLD).replace("\t", "\\t"))
        begins = is_folded and character == "\n"
    if is_multiline:
        parts += [_INDENT * level] if begins else [_FOLD, _INDENT * level]
    return "".join((*parts, '"'))


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character == " " or unicodedata.category(character)[0] in "LMNPS":
        return character
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
