"""Decode YAML bodies as an apiserver does, with the errors of go-yaml v2. Only the first document.

Strict decoding reports all duplicate keys in one error; decoding itself keeps the last of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import yaml

from specmux_converters.document import Limits
from specmux_converters.errors import ConverterError, LimitExceeded
from specmux_converters.go.yaml_dialects import KUBERNETES_EXACT
from specmux_converters.go.yaml_reader import NODE_BYTES, DuplicateKey, Duplicates, YamlDocument, read
from specmux_tools.validation.decoding.json_reader import MOST_DEPTH
from specmux_tools.validation.errors import Undecodable

MOST_DECODED: Final = 1_000_000
"""Values, with aliases expanded: an apiserver's limit is softer (go-yaml's allowedAliasRatio)."""

ERRORS_PREFIX: Final = "yaml: unmarshal errors:\n"


def strict_yaml_error(duplicates: Iterable[DuplicateKey]) -> str:
    """All of them in one error, as by an apiserver."""
    return ERRORS_PREFIX + "\n".join(f"  {each.text}" for each in duplicates)


def read_yaml(data: bytes) -> YamlDocument:
    """Raises Undecodable for what go-yaml, or JSON after it, refuses."""
    limits = Limits(max_depth=MOST_DEPTH, max_expanded_bytes=MOST_DECODED * NODE_BYTES + len(data))
    try:
        return read(
            data, dialect=KUBERNETES_EXACT, duplicates=Duplicates.REPORTED, limits=limits, with_marks=True
        )
    except ConverterError as error:
        raise _undecodable(error) from error


def _undecodable(error: ConverterError) -> Undecodable:
    match error.__cause__:
        case yaml.YAMLError() as cause:
            line, column = _place(cause) or (error.line, None)
            return Undecodable(_syntax_text(cause), line=line, column=column)
        case UnicodeError():
            return Undecodable("yaml: invalid Unicode character")
    if isinstance(error, LimitExceeded) and not error.reason.startswith("nested"):
        return Undecodable("yaml: document contains excessive aliasing", line=error.line)
    return Undecodable(error.reason, line=error.line)


def _place(error: yaml.YAMLError) -> tuple[int, int] | None:
    """The place of the error, from 1: for an unterminated quotation, its start."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return None
    is_open = error.problem == "found unexpected end of stream" and error.context_mark is not None
    mark = error.context_mark if is_open else error.problem_mark
    return (mark.line + 1, mark.column + 1) if mark is not None else None


def _syntax_text(error: yaml.YAMLError) -> str:
    """parser.fail: lines count from 1 in the scanner, from 0 in the parser; none for the first line."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"yaml: {getattr(error, 'reason', None) or 'unknown problem parsing YAML content'}"
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{error.problem}"
