"""Check a document against its standard with openapi-spec-validator; findings have a place.

Nothing outside the document is resolved. Values of ``default`` are judged here, depending on who wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from specmux_converters.document import Document, DocumentKind
from specmux_converters.errors import cut
from specmux_converters.losses import pointer_to, tokens_of
from specmux_converters.operations import GROUP_VERSION_KIND
from specmux_tools.document_checks.findings import DocumentFinding
from specmux_tools.reports import Level

_SCHEMES: Final = ("<all_urls>", "http", "https", "file", "")
_ZERO: Final[tuple[Any, ...]] = ({}, [], "", 0, False)
_HOPS_MAX: Final = 100
"""Longest chain of references."""


def against_standard(document: Document, kind: DocumentKind) -> Iterator[DocumentFinding]:
    """Errors; and one note for all defaults of Kubernetes that its own schemas do not allow."""
    is_kubernetes = _is_kubernetes(document)
    zeros: list[str] = []
    try:
        for error in _validator(document, kind).iter_errors():
            place = pointer_to(*_lying(document, tuple(error.absolute_path)))
            if is_kubernetes and _is_zero_default(document, place):
                zeros.append(place)
            else:
                yield DocumentFinding(Level.ERROR, "schema", place, cut(error.message))
    except RecursionError:
        reason = (
            "a schema is made of itself, which openapi-spec-validator does not end on; not all was checked"
        )
        yield DocumentFinding(Level.ERROR, "unchecked", "", reason)
    except Exception as error:  # noqa: BLE001  # the library's own faults, on documents that are none
        reason = f"openapi-spec-validator ends with {type(error).__name__}: {cut(str(error))}"
        yield DocumentFinding(Level.ERROR, "unchecked", "", reason)
    if zeros:
        yield _of_zeros(sorted(set(zeros)))


def _of_zeros(places: Sequence[str]) -> DocumentFinding:
    # kube-openapi publishes Go's zero value for fields that are not pointers; no apiserver applies it.
    message = (
        f"{len(places)} {'default' if len(places) == 1 else 'defaults'} of Kubernetes' own, such as {{}} or "
        '"", are not valid by their schemas: zero values of Go, which no apiserver applies; the first is here'
    )
    return DocumentFinding(Level.NOTE, "zero-default", places[0], message)


def _validator(document: Document, kind: DocumentKind) -> Any:
    from openapi_spec_validator import (
        OpenAPIV2SpecValidator,
        OpenAPIV30SpecValidator,
        OpenAPIV31SpecValidator,
    )

    def deny(uri: str) -> Any:
        raise LookupError(f"{cut(uri)} is outside the document; it is not fetched")

    validator: Any = OpenAPIV2SpecValidator
    if kind is DocumentKind.OPENAPI_3:
        is_3_0 = str(document["openapi"]).startswith("3.0")
        validator = OpenAPIV30SpecValidator if is_3_0 else OpenAPIV31SpecValidator
    keywords = {name: _placing(name, each) for name, each in validator.keyword_validators.items()}
    own = {"resolver_handlers": dict.fromkeys(_SCHEMES, deny), "keyword_validators": keywords}
    return type("Alone", (validator,), own)(_without_extensions(document))


def _placing(name: str, keyword: Any) -> Any:
    """A keyword validator whose errors have a path, which the library knows but does not expose."""

    def call(self: Any, *arguments: Any, **named: Any) -> Iterator[Any]:
        for error in keyword.__call__(self, *arguments, **named):
            if not hasattr(error, "is_placed"):
                paths = (each.parts for each in arguments if hasattr(each, "parts"))
                parts = (*next(paths, ()), *(["default"] if name == "default" else []))
                error.relative_path.extendleft(reversed(parts))
                error.is_placed = True
            yield error

    return type(keyword.__name__, (keyword,), {"__call__": call})


def _without_extensions(document: Document) -> Document:
    """Without the extensions of ``paths``, which are free-form: the library would take them for path
    items."""
    paths = document.get("paths")
    if not isinstance(paths, dict):
        return document
    return {**document, "paths": {key: item for key, item in paths.items() if key[:2] != "x-"}}


def _lying(document: Document, path: Sequence[Any]) -> tuple[Any, ...]:
    """The actual path in the document of a path that leads through references."""
    found: list[Any] = []
    node: Any = document
    hops = 0
    for part in path:
        while isinstance(node, dict) and part not in node and hops < _HOPS_MAX:
            ref = node.get("$ref")
            if not isinstance(ref, str) or not ref.startswith("#"):
                break
            found, hops = [*tokens_of(ref)], hops + 1
            node = _node(document, found)
        found.append(part)
        node = _child(node, part)
    return tuple(found)


def _is_zero_default(document: Document, pointer: str) -> bool:
    tokens = tokens_of(pointer)
    for length, token in enumerate(tokens, 1):
        if token == "default":  # noqa: S105
            value = _node(document, tokens[:length])
            if any(value == zero and type(value) is type(zero) for zero in _ZERO):
                return True
    return False


def _node(document: Document, tokens: Sequence[Any]) -> Any:
    node: Any = document
    for token in tokens:
        node = _child(node, token)
    return node


def _child(node: Any, token: Any) -> Any:
    if isinstance(node, dict):
        return node.get(token)
    if isinstance(node, list) and str(token).isdecimal() and int(token) < len(node):
        return node[int(token)]
    return None


def _is_kubernetes(document: Document) -> bool:
    """Whether a kind or an operation has the group, version and kind that kube-openapi adds."""
    components = document.get("components")
    schemas = components.get("schemas") if isinstance(components, dict) else document.get("definitions")
    if isinstance(schemas, dict) and any(
        GROUP_VERSION_KIND in each for each in schemas.values() if isinstance(each, dict)
    ):
        return True
    paths = document.get("paths")
    return isinstance(paths, dict) and any(
        GROUP_VERSION_KIND in operation
        for item in paths.values()
        if isinstance(item, dict)
        for operation in item.values()
        if isinstance(operation, dict)
    )
