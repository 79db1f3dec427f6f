"""``fieldPath`` of a rule: names below its place (apiextensions, pkg/apiserver/schema/cel/validation.go)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from specmux_tools.validation.report import Path
from specmux_tools.validation.rules.rule_tree import RuleNode

_PART: Final = re.compile(r"'(?:[^']|(?<=\\)')*'|[.\[\]]|[^.\[\]']++[^.\[\]]*+")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "'": "'",
    "\\": "\\",
}


class BadFieldPath(Exception):
    """In an apiserver's words."""


def read_field_path(text: str, node: RuleNode) -> tuple[Path, str]:
    """The names in it, and how messages show them. Raises BadFieldPath."""
    found, shown, _ = follow_field_path(text, node)
    return found, shown


def follow_field_path(text: str, node: RuleNode, *, takes_keys: bool = True) -> tuple[Path, str, RuleNode]:
    """And what it leads to. ``takes_keys``: names may stand in brackets. Raises BadFieldPath."""
    found: list[str] = []
    shown = ""
    parts = (match.group() for match in _PART.finditer(text))
    for part in parts:
        if part == "[":
            if not takes_keys:
                raise BadFieldPath("array notation is not allowed")
            quoted = _next(parts)
            if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
                raise BadFieldPath(f"expected single quoted string but got {quoted}")
            name = _unescape(quoted[1:-1])
            is_field, node = _below(node, name)
            if (closing := _next(parts)) != "]":
                raise BadFieldPath(f"expected ] but got {closing}")
        elif part == ".":
            name = _next(parts)
            is_field, node = _below(node, name)
        else:
            raise BadFieldPath(f"expected [ or . but got: {part}")
        found.append(name)
        shown += f".{name}" if is_field else f"[{name}]"
    return tuple(found), shown.removeprefix("."), node


def _next(parts: Iterator[str]) -> str:
    part = next(parts, None)
    if part is None:
        raise BadFieldPath("unexpected end of JSON path")
    return part


def _below(node: RuleNode, name: str) -> tuple[bool, RuleNode]:
    """Whether it is a field, and what is there."""
    found = node.properties.get(name) if node.properties else node.additional
    if found is None:
        raise BadFieldPath("does not refer to a valid field")
    return bool(node.properties), found


def _unescape(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            raise BadFieldPath(f"invalid string literal: invalid escape char {found[0]}")
        return _ESCAPES[found[1]]

    return _ESCAPE.sub(character, text)
