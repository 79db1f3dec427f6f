"""Formats by name, and what is wrong with a text (apiserver, pkg/cel/library/format.go)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.metadata.names import (
    label_1035_faults,
    label_faults,
    label_value_faults,
    qualified_name_faults,
    subdomain_faults,
    without_trailing_dash,
)
from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Overload, member
from specmux_tools.validation.rules.cel.checking.types import STRING, list_of, optional_of, struct
from specmux_tools.validation.rules.cel.libraries.urls import url_fault
from specmux_tools.validation.rules.cel.values.values import NONE, Opaque, Optional, no_such_overload
from specmux_tools.validation.schema.formats import find_format

FORMAT: Final = struct("kubernetes.NamedFormat")
Faults = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class FormatValue(Opaque):
    name: str
    faults: Faults
    pattern_size: int
    """The length of the pattern that it stands for, as cost counts it."""
    type_name = FORMAT.name

    def same(self, other: Any) -> bool:
        if not isinstance(other, FormatValue):
            raise no_such_overload()
        return self.name == other.name


def _prefix(faults: Faults) -> Faults:
    return lambda text: faults(without_trailing_dash(text))


def _of_format(name: str, fault: str) -> Faults:
    form = find_format(name)
    if form is None:
        raise LookupError(name)
    accepts = form.accepts
    return lambda text: [] if accepts(text) else [fault]


def _uri_faults(text: str) -> list[str]:
    fault = url_fault(text)
    return [] if fault is None else [fault]


_TIME_SIZE: Final = 71


def _formats() -> dict[str, FormatValue]:
    return {
        name: FormatValue(name, faults, size)
        for name, faults, size in (
            ("dns1123Label", label_faults, 30),
            ("dns1123Subdomain", subdomain_faults, 60),
            ("dns1035Label", label_1035_faults, 30),
            ("qualifiedName", qualified_name_faults, 60),
            ("dns1123LabelPrefix", _prefix(label_faults), 30),
            ("dns1123SubdomainPrefix", _prefix(subdomain_faults), 60),
            ("dns1035LabelPrefix", _prefix(label_1035_faults), 30),
            ("labelValue", label_value_faults, 40),
            ("uri", _uri_faults, 1_103),
            ("uuid", _of_format("uuid", "does not match the UUID format"), 70),
            ("byte", _of_format("byte", "invalid base64"), 84),
            ("date", _of_format("date", "invalid date"), _TIME_SIZE),
            ("datetime", _of_format("datetime", "invalid datetime"), _TIME_SIZE),
        )
    }


def _validate(form: FormatValue, text: str) -> Optional:
    faults = form.faults(text)
    return Optional(tuple(faults)) if faults else NONE


def _constant(form: FormatValue) -> Callable[[], FormatValue]:
    return lambda: form


def named_formats() -> CelLibrary:
    formats = _formats()

    def named(name: str) -> Optional:
        found = formats.get(name)
        return NONE if found is None else Optional(found)

    functions = {
        f"format.{name}": (Overload(f"format.{name}", (), FORMAT, _constant(form)),)
        for name, form in formats.items()
    }
    functions["format.named"] = (Overload("format-named", (STRING,), optional_of(FORMAT), named),)
    validate = member("format-validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validate)
    return CelLibrary({**functions, "validate": (validate,)})
