"""Format field errors as an apiserver does (apimachinery, pkg/util/validation/field)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from specmux_converters.go.text import Number, general_text, json_text, quote_text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.report import Path, path_text


@dataclass(frozen=True, slots=True)
class FieldError:
    """``text``: an apiserver's message, with the path in its form."""

    path: Path
    text: str


def field_path(path: Path) -> str:
    """field.Path.String, with every key as a child: an empty path is ``<nil>``."""
    return path_text(path) if path else "<nil>"


def invalid(path: str, value: Any, detail: str) -> str:
    return f"{path}: Invalid value: {show_value(value)}{': ' if detail else ''}{detail}"


def duplicate(path: str, value: Any) -> str:
    return f"{path}: Duplicate value: {show_value(value)}"


def required(path: Path, detail: str = "") -> str:
    return f"{field_path(path)}: Required value{': ' if detail else ''}{detail}"


def not_supported(path: Path, value: Any, choices: Iterable[Any]) -> str:
    return f"{field_path(path)}: {unsupported(value, choices)}"


def unsupported(value: Any, choices: Iterable[Any]) -> str:
    """The text behind a path. ``choices``: in the order to list them."""
    return f"Unsupported value: {show_value(value)}: supported values: {', '.join(map(show_value, choices))}"


def show_value(value: Any) -> str:
    """A bad value: strings quoted, scalars plain, others as JSON."""
    if isinstance(value, str):
        return quote_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return general_text(float(value))
    if isinstance(value, float):
        return general_text(value)
    return json_text(value)
