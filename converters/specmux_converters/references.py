"""The references of an OpenAPI v3 document, found by position: ``example``, ``default``, ``enum`` and ``x-*``
contain data, and a property may be called ``$ref``.

Some places refer by name alone: security requirements, discriminators, ``operationId``. These names are
renamed like the corresponding references. Kubernetes writes a reference with annotations as ``allOf`` with
one element, since OpenAPI 3.0 ignores siblings of ``$ref``.

The table below lists where each kind of object contains others (OpenAPI 3.0.3, section 4.7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from specmux_converters.errors import InvalidDocument
from specmux_converters.json_values import mapping, within
from specmux_converters.losses import pointer_to, unescape

Rename: TypeAlias = Callable[[str], str]
"""Maps a reference to the reference that replaces it."""

PREFIX: Final = "#/components/"

OPERATION_IDS: Final = "operationIds"
"""A pseudo-section for the ids of operations."""

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")

ONE_OF: Final[Mapping[str, Mapping[str, str]]] = {
    "path_item": dict.fromkeys(METHODS, "operation"),
    "operation": {"requestBody": "request_body"},
    "parameter": {"schema": "schema"},
    "header": {"schema": "schema"},
    "media_type": {"schema": "schema"},
    "schema": {"items": "schema", "additionalProperties": "schema", "not": "schema"},
    "document": {"components": "components"},
}
MAPS_OF: Final[Mapping[str, Mapping[str, str]]] = {
    "document": {"paths": "path_item"},
    "components": {
        "schemas": "schema",
        "responses": "response",
        "parameters": "parameter",
        "examples": "example",
        "requestBodies": "request_body",
        "headers": "header",
        "securitySchemes": "security_scheme",
        "links": "link",
        "callbacks": "callback",
    },
    "operation": {"responses": "response", "callbacks": "callback"},
    "parameter": {"content": "media_type", "examples": "example"},
    "header": {"content": "media_type", "examples": "example"},
    "media_type": {"examples": "example", "encoding": "encoding"},
    "encoding": {"headers": "header"},
    "request_body": {"content": "media_type"},
    "response": {"headers": "header", "content": "media_type", "links": "link"},
    "schema": {"properties": "schema"},
}
LISTS_OF: Final[Mapping[str, Mapping[str, str]]] = {
    "path_item": {"parameters": "parameter"},
    "operation": {"parameters": "parameter"},
    "schema": {"allOf": "schema", "anyOf": "schema", "oneOf": "schema"},
}
KINDS: Final = MAPS_OF["components"]
"""A section of ``components`` -> the kind of its objects."""


MOST_HOPS: Final = 32
"""Longest chain of references; a longer one is assumed to be circular."""

EMPTY: Final[Mapping[str, Any]] = {}


def rewrite(node: Any, kind: str, rename: Rename) -> Any:
    """``node`` with every reference renamed: the same object if nothing changes, else a copy of the changed
    parts.

    Raises InvalidDocument if it is nested too deeply.
    """
    try:
        return _rewrite(node, kind, rename)
    except RecursionError:
        raise InvalidDocument("nested too deeply") from None


def references(node: Any, kind: str) -> set[str]:
    """All references below ``node``. Raises as ``rewrite``."""
    found: set[str] = set()

    def note(ref: str) -> str:
        found.add(ref)
        return ref

    rewrite(node, kind, note)
    return found


def reachable(schemas: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    """The names, with those of all schemas that these refer to, there or not."""
    found: set[str] = set()
    wanted = list(names)
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        found.add(name)
        targets = (name_in(reference, "schemas") for reference in references(schemas.get(name), "schema"))
        wanted += [target for target in targets if target is not None]
    return found


def name_in(ref: str, section: str) -> str | None:
    """The component of the section that ``ref`` refers to as a whole; None otherwise."""
    head, slash, token = ref.rpartition("/")
    is_whole = f"{head}{slash}" == f"{PREFIX}{section}/"
    return unescape(token) if is_whole else None


def schemas_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document's schemas by component name."""
    return within(document.get("components"), "schemas")


def resolve_part(document: Mapping[str, Any], part: Any) -> dict[str, Any]:
    """A parameter, body or response, or the component that it refers to; empty if there is none."""
    reference = mapping(part).get("$ref")
    if not isinstance(reference, str):
        return mapping(part)
    section, _, name = reference.removeprefix(PREFIX).partition("/")
    return within(document.get("components"), section, unescape(name))


def component_of(schema: Mapping[str, Any]) -> str | None:
    """The component that ``schema`` stands for: by ``$ref``, or by ``allOf`` with a single ``$ref``."""
    reference = schema.get("$ref")
    if reference is None:
        match schema.get("allOf"):
            case [{"$ref": reference}]:
                pass
            case _:
                return None
    return name_in(reference, "schemas") if isinstance(reference, str) else None


def _rewrite(node: Any, kind: str, rename: Rename) -> Any:
    if not isinstance(node, dict):
        return node
    changed: dict[str, Any] = {}
    one, maps, lists = ONE_OF.get(kind, {}), MAPS_OF.get(kind, {}), LISTS_OF.get(kind, {})
    for key, value in node.items():
        if key == "$ref" and isinstance(value, str):
            new: Any = rename(value)
        elif key in one:
            new = _rewrite(value, one[key], rename)
        elif key in maps:
            new = _rewrite_map(value, maps[key], rename)
        elif key in lists:
            new = _rewrite_list(value, lists[key], rename)
        elif kind == "callback" and key[:2] != "x-":
            new = _rewrite(value, "path_item", rename)
        elif kind == "schema" and key == "discriminator":
            new = _rewrite_discriminator(value, node, rename)
        elif kind == "operation" and key == "security":
            new = _rewrite_security(value, rename)
        elif kind in ("operation", "link") and key == "operationId" and isinstance(value, str):
            new = _rename_component(value, OPERATION_IDS, rename)
        else:
            continue
        if new is not value:
            changed[key] = new
    return {**node, **changed} if changed else node


def _rewrite_map(value: Any, kind: str, rename: Rename) -> Any:
    if not isinstance(value, dict):
        return value
    changed = {}
    for key, item in value.items():
        if key[:2] == "x-" and kind in ("path_item", "response"):
            continue
        new = _rewrite(item, kind, rename)
        if new is not item:
            changed[key] = new
    return {**value, **changed} if changed else value


def _rewrite_list(value: Any, kind: str, rename: Rename) -> Any:
    if not isinstance(value, list):
        return value
    new = [_rewrite(item, kind, rename) for item in value]
    return value if all(a is b for a, b in zip(new, value, strict=True)) else new


def _rewrite_security(value: Any, rename: Rename) -> Any:
    if not isinstance(value, list):
        return value
    new = [
        {_rename_component(name, "securitySchemes", rename): scopes for name, scopes in each.items()}
        if isinstance(each, dict)
        else each
        for each in value
    ]
    return value if new == value else new


def _rewrite_discriminator(value: Any, schema: Mapping[str, Any], rename: Rename) -> Any:
    """``mapping`` contains references and names of schemas. Schemas listed in ``oneOf`` and ``anyOf`` are
    implicitly mapped by name, so a renamed one is mapped explicitly from its old name."""
    if not isinstance(value, dict):
        return value
    mapped = mapping(value.get("mapping"))
    new = {key: _rewrite_mapped(target, rename) for key, target in mapped.items()}
    for ref in _alternatives(schema):
        name, renamed = name_in(ref, "schemas"), rename(ref)
        if name is not None and renamed != ref:
            new.setdefault(name, renamed)
    return value if new == mapped else {**value, "mapping": new}


def _rewrite_mapped(target: Any, rename: Rename) -> Any:
    if not isinstance(target, str):
        return target
    return rename(target) if target.startswith("#/") else _rename_component(target, "schemas", rename)


def _alternatives(schema: Mapping[str, Any]) -> list[str]:
    listed = [schema.get(key) for key in ("oneOf", "anyOf")]
    items = [item for each in listed if isinstance(each, list) for item in each if isinstance(item, dict)]
    return [item["$ref"] for item in items if isinstance(item.get("$ref"), str)]


def _rename_component(name: str, section: str, rename: Rename) -> str:
    ref = PREFIX + section + pointer_to(name)
    new = rename(ref)
    return name if new == ref else name_in(new, section) or name


def reference_to(component: str) -> str:
    """The reference to a component whose name needs no escaping, as in Kubernetes."""
    return f"{PREFIX}schemas/{component}"


def resolve_schema(schemas: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """``schema``, or the component that it refers to, without siblings of the reference.

    An empty schema, which allows anything, for a dangling or circular reference.
    """
    for _ in range(MOST_HOPS):
        name = component_of(schema)
        if name is None:
            return schema
        target = schemas.get(name)
        if not isinstance(target, dict):
            return EMPTY
        schema = target
    return EMPTY
