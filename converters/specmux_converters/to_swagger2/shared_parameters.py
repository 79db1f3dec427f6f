"""Parameters shared by operations, with the names that kube-openapi gives them
(pkg/builder/parameters.go)."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, TypeAlias

import orjson

from specmux_converters.document import Document
from specmux_converters.references import METHODS

_ORDER: Final = (
    "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern",
    "maxItems", "minItems", "uniqueItems", "multipleOf", "enum", "type", "nullable", "format", "items",
    "collectionFormat", "default", "example", "description", "name", "in", "required", "schema",
    "allowEmptyValue",
)  # fmt: skip
"""Fields in Go's order: the name contains a hash of that text."""

_UNSHARED: Final = frozenset(
    {("query", "name"), ("path", "name"), ("query", "fieldValidation"), ("query", "dryRun")}
)
"""kubectl looks for the last two in the operation itself; a name's description contains the kind."""
_GENERIC: Final = "#/definitions/io.k8s.apimachinery"
_FNV_OFFSET: Final = 14695981039346656037
_FNV_PRIME: Final = 1099511628211


Known: TypeAlias = dict[int, tuple[str | None, Document]]
"""Name of a shared parameter by identity, since equal ones are mostly the same object; None: not shared.
Keeps the object, so that its id stays unique."""


def share_parameters(paths: Iterable[Document], known: Known | None = None) -> Document:
    """The shared parameters of these paths, which are changed to refer to them. ``known``: of earlier
    paths."""
    known = {} if known is None else known
    shared: Document = {}
    for parameters in (each for item in paths for each in _lists(item)):
        for index, parameter in enumerate(parameters):
            found = known.get(id(parameter))
            if found is None:
                found = known[id(parameter)] = _shared_name(parameter), parameter
            name = found[0]
            if name is not None:
                shared.setdefault(name, parameter)
                parameters[index] = {"$ref": f"#/parameters/{name}"}
    return dict(sorted(shared.items()))


def _shared_name(parameter: Document) -> str | None:
    return f"{parameter['name']}-{_hash(_text(parameter))}" if _is_shared(parameter) else None


def _lists(item: Document) -> Iterator[list[Any]]:
    for holder in (item, *(item[method] for method in METHODS if method in item)):
        parameters = holder.get("parameters")
        if parameters:
            yield parameters


def _is_shared(parameter: Document) -> bool:
    if "$ref" in parameter or (parameter["in"], parameter["name"]) in _UNSHARED:
        return False
    is_body = parameter["in"] == "body" and parameter["name"] == "body"
    return not is_body or str(parameter["schema"].get("$ref", "")).startswith(_GENERIC)


def _text(parameter: Document) -> bytes:
    known = {key: parameter[key] for key in _ORDER if key in parameter}
    return orjson.dumps({**known, **dict(sorted(parameter.items()))})


@lru_cache(maxsize=1024)
def _hash(text: bytes) -> str:
    """Six bytes of FNV-1, in base64."""
    value = _FNV_OFFSET
    for byte in text:
        value = (value * _FNV_PRIME) & 0xFFFFFFFFFFFFFFFF ^ byte
    return urlsafe_b64encode(value.to_bytes(8, "big")[:6]).decode()
