"""Violations of a schema, in an apiserver's words.

The texts are those of kube-openapi (pkg/validation/{validate,errors}), turned into field errors as in
apiextensions (pkg/apiserver/validation/validation.go, kubeOpenAPIResultToFieldErrors).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from specmux_converters.go.text import general_text, json_text, quote_text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.field_errors import field_path, invalid, not_supported
from specmux_tools.validation.report import Path

OMITTED: Final = ""
"""The value of an error that prints none."""


@dataclass(frozen=True, slots=True)
class SchemaError:
    """``text`` is the field error. ``detail`` identifies it: equal errors are reported once."""

    path: Path
    text: str
    detail: str
    blocks_rules: bool = False
    """Such an error suppresses CEL rules (registry/customresource/strategy.go)."""
    depth: int | None = None
    """Length of the part of ``path`` that leads to the value whose branches found the error; None: all of
    it."""

    @property
    def place(self) -> Path:
        return self.path if self.depth is None else self.path[: self.depth]


def of_branches(found: Iterable[SchemaError], depth: int) -> list[SchemaError]:
    """The errors of branches, attributed to the value at this depth."""
    return [replace(error, depth=depth) for error in found]


def name_of(path: Path) -> str:
    """The name that kube-openapi gives a value."""
    return field_path(path) if path else ""


def body_error(path: Path, value: Any, detail: str, *, blocks_rules: bool = False) -> SchemaError:
    text = f"{name_of(path)} in body {detail}"
    return SchemaError(path, invalid(field_path(path), value, text), text, blocks_rules)


def wrong_type(path: Path, wanted: str, found: str) -> SchemaError:
    """``found`` is the type or, for a format, the value."""
    return body_error(path, found, f"must be of type {wanted}: {quote_text(found)}", blocks_rules=True)


def missing_field(path: Path, name: str) -> SchemaError:
    path = (*path, name)
    text = f"{field_path(path)}: Required value"
    return SchemaError(path, text, f".{name_of(path)} in body is required", blocks_rules=True)


def not_in_enum(path: Path, value: Any, choices: Sequence[Any]) -> SchemaError:
    texts = [choice if isinstance(choice, str) else json_text(choice) for choice in choices]
    text = not_supported(path, value, texts)
    listed = " ".join(map(json_text, choices))
    return SchemaError(path, text, f"{name_of(path)} in body should be one of [{listed}]", blocks_rules=True)


def too_long(path: Path, most: int) -> SchemaError:
    unit = "byte" if most == 1 else "bytes"
    words = "value is too long" if most < 0 else f"may not be more than {most} {unit}"
    text = f"{field_path(path)}: Too long: {words}"
    detail = f"{name_of(path)} in body should be at most {most} chars long"
    return SchemaError(path, text, detail, blocks_rules=True)


def too_many(path: Path, count: int, most: int, what: str) -> SchemaError:
    """The error of too many items or properties; the field error says "items" for both."""
    unit = "item" if most == 1 else "items"
    words = "has too many items" if most < 0 else f"must have at most {most} {unit}"
    text = f"{field_path(path)}: Too many: {count}: {words}"
    detail = f"{name_of(path)} in body should have at most {most} {what}"
    return SchemaError(path, text, detail, blocks_rules=True)


def too_short(path: Path, least: int) -> SchemaError:
    unit = "character" if least == 1 else "characters"
    text = f"{field_path(path)}: Too short: must be at least {least} {unit}"
    return SchemaError(path, text, f"{name_of(path)} in body should be at least {least} chars long")


def too_few(path: Path, count: int, least: int, what: str) -> SchemaError:
    unit = "item" if least == 1 else "items"
    text = f"{field_path(path)}: Too few: {count}: must have at least {least} {unit}"
    return SchemaError(path, text, f"{name_of(path)} in body should have at least {least} {what}")


def composite(path: Path, detail: str) -> SchemaError:
    """The error of anyOf, oneOf, allOf and not: it names no field."""
    return out_of_range(path, f"{quote_text(name_of(path))} {detail}")


def out_of_range(path: Path, text: str) -> SchemaError:
    """The error names no field, like all that upstream creates without a path."""
    return SchemaError(path, invalid("<nil>", OMITTED, text), text)


def forbidden_property(path: Path, key: str) -> SchemaError:
    text = f"{name_of(path)}.{key} in body is a forbidden property"
    return SchemaError((*path, key), invalid(field_path(path), key, text), text)


def no_factor(path: Path, factor: int | float) -> SchemaError:
    """The error of multipleOf; for an integer, one below 1 counts as 0."""
    shown = bound_text(factor, is_integer=isinstance(factor, int))
    text = f"factor MultipleOf declared for {name_of(path)} must be positive: {shown}"
    return SchemaError(path, invalid(field_path(path), factor, text), text)


def bound_text(bound: int | float, *, is_integer: bool) -> str:
    """Bounds are doubles; for an integer they are printed as integers."""
    return str(int(bound)) if is_integer else general_text(float(bound))
