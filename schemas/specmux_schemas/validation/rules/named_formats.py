"""The library ``format`` of Kubernetes' CEL (apiserver, pkg/cel/library/format.go): formats by name, and what
is wrong with a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from specmux_converters.go.text import quoted
from specmux_schemas.validation.metadata.names import (
    label_1035_faults,
    label_faults,
    label_value_faults,
    qualified_name_faults,
    subdomain_faults,
    without_trailing_dash,
)
from specmux_schemas.validation.schema.formats import find_format

_FORMAT: Final = "format()"
Faults = Callable[[str], list[str]]


def _prefix(faults: Faults) -> Faults:
    return lambda text: faults(without_trailing_dash(text))


def _of_format(name: str, fault: str) -> Faults:
    form = find_format(name)
    if form is None:
        raise LookupError(name)
    accepts = form.accepts
    return lambda text: [] if accepts(text) else [fault]


def _uri_faults(text: str) -> list[str]:
    form = find_format("uri")
    return (
        [] if form is not None and form.accepts(text) else [f"parse {quoted(text)}: invalid URI for request"]
    )


_FORMATS: Final[Mapping[str, Faults]] = {
    "dns1123Label": label_faults,
    "dns1123Subdomain": subdomain_faults,
    "dns1035Label": label_1035_faults,
    "qualifiedName": qualified_name_faults,
    "dns1123LabelPrefix": _prefix(label_faults),
    "dns1123SubdomainPrefix": _prefix(subdomain_faults),
    "dns1035LabelPrefix": _prefix(label_1035_faults),
    "labelValue": label_value_faults,
    "uri": _uri_faults,
    "uuid": _of_format("uuid", "does not match the UUID format"),
    "byte": _of_format("byte", "invalid base64"),
    "date": _of_format("date", "invalid date"),
    "datetime": _of_format("datetime", "invalid datetime"),
}


def format_functions(optional: Any) -> dict[str, Callable[..., Any]]:
    """By the name they are called by; ``optional`` is the library's class of optional values."""

    def validated(form: Mapping[str, str], text: str) -> Any:
        faults = _FORMATS[form[_FORMAT]](text)
        return optional.of(faults) if faults else optional.none()

    def named(name: str) -> Any:
        return optional.of({_FORMAT: name}) if name in _FORMATS else optional.none()

    constants = {f"format.{name}": partial(_form, name) for name in _FORMATS}
    return {**constants, "format.named": named, "validate": validated}


def _form(name: str) -> dict[str, str]:
    return {_FORMAT: name}
