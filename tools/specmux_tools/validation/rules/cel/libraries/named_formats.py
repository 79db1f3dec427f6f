"""Formats by name, and what is wrong with a text (apiserver, pkg/cel/library/format.go)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Final

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
from specmux_tools.validation.rules.cel.values.values import NONE, Opaque, Optional
from specmux_tools.validation.schema.formats import FORMATS
from specmux_tools.validation.schema.urls import url_fault

FORMAT: Final = struct("kubernetes.NamedFormat")
Faults = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class FormatValue(Opaque):
    name: str
    faults: Faults = field(compare=False)
    pattern_size: int
    """The length of the pattern that it stands for, as cost counts it."""
    type_name = FORMAT.name


def _prefix(faults: Faults) -> Faults:
    return lambda text: faults(without_trailing_dash(text))


def _of_format(name: str, fault: str) -> Faults:
    accepts = FORMATS[name]
    return lambda text: [] if accepts(text) else [fault]


def _uri_faults(text: str) -> list[str]:
    fault = url_fault(text)
    return [] if fault is None else [fault]


_TIME_SIZE: Final = 71


_FORMATS: Final = (
    FormatValue("dns1123Label", label_faults, 30),
    FormatValue("dns1123Subdomain", subdomain_faults, 60),
    FormatValue("dns1035Label", label_1035_faults, 30),
    FormatValue("qualifiedName", qualified_name_faults, 60),
    FormatValue("dns1123LabelPrefix", _prefix(label_faults), 30),
    FormatValue("dns1123SubdomainPrefix", _prefix(subdomain_faults), 60),
    FormatValue("dns1035LabelPrefix", _prefix(label_1035_faults), 30),
    FormatValue("labelValue", label_value_faults, 40),
    FormatValue("uri", _uri_faults, 1_103),
    FormatValue("uuid", _of_format("uuid", "does not match the UUID format"), 70),
    FormatValue("byte", _of_format("byte", "invalid base64"), 84),
    FormatValue("date", _of_format("date", "invalid date"), _TIME_SIZE),
    FormatValue("datetime", _of_format("datetime", "invalid datetime"), _TIME_SIZE),
)
_OPTIONS: Final = {form.name: Optional(form) for form in _FORMATS}


def _validate(form: FormatValue, text: str) -> Optional:
    faults = form.faults(text)
    return Optional(tuple(faults)) if faults else NONE


def _constant(form: FormatValue) -> tuple[Overload, ...]:
    return (Overload(f"format.{form.name}", (), FORMAT, lambda: form),)


NAMED_FORMATS: Final = CelLibrary(
    {
        **{f"format.{form.name}": _constant(form) for form in _FORMATS},
        "format.named": (
            Overload("format-named", (STRING,), optional_of(FORMAT), lambda name: _OPTIONS.get(name, NONE)),
        ),
        "validate": (member("format-validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validate),),
    }
)
