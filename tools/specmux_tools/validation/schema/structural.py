"""The structure of a custom resource's schema, for pruning, defaulting and metadata.

As in apiextensions' structural schemas, allOf, anyOf, oneOf and not contribute no structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from specmux_converters.crd.keywords import DEFINED_FIELDS, EMBEDDED_RESOURCE, PRESERVE_UNKNOWN_FIELDS
from specmux_converters.json_values import mapping, text, texts
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.references import resolve_schema
from specmux_tools.validation.report import Path

MOST_DEPTH: Final = 100
"""Levels of a schema, whose references may be circular. Deeper ones accept anything."""

LIST_TYPE: Final = "x-kubernetes-list-type"
MAP_KEYS: Final = "x-kubernetes-list-map-keys"
META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


NO_DEFAULT: Final[Any] = object()
"""The absence of a default, since None is a valid one."""


@dataclass(slots=True, eq=False)
class Structural:
    properties: dict[str, Structural] = field(default_factory=dict)
    has_additional: bool = False
    additional: Structural | None = None
    """None if additionalProperties is absent or a boolean."""
    items: Structural | None = None
    preserves: bool = False
    is_embedded: bool = False
    is_defined: bool = True
    """False for apiVersion, kind and metadata whose schemas are an apiserver's own."""
    is_nullable: bool = False
    default: Any = NO_DEFAULT
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    has_lists: bool = False
    """Whether it or anything below it is a set or map."""
    has_embedded: bool = False
    """Whether it or anything below it is an embedded object."""
    has_defaults: bool = False
    """Whether it or anything below it has a default."""


def structural(schema: Any, schemas: Mapping[str, Any], depth: int = 0) -> Structural:
    """The structure of a published schema; ``schemas``: the components that it refers to."""
    if not isinstance(schema, Mapping) or depth > MOST_DEPTH:
        return Structural()
    schema = resolve_schema(schemas, schema)
    is_embedded = schema.get(EMBEDDED_RESOURCE) is True
    is_object = is_embedded or depth == 0
    defined = mapping(schema[DEFINED_FIELDS]) if DEFINED_FIELDS in schema else {}
    values = schema.get("additionalProperties")
    items = schema.get("items")
    node = Structural(
        properties={
            # Published metadata is ObjectMeta, and decoded as such.
            name: structural(defined.get(name, inner), schemas, depth + 1)
            if name in defined or not is_object or name not in META_FIELDS
            else Structural(is_defined=False)
            for name, inner in (mapping(schema["properties"]).items() if "properties" in schema else ())
        },
        has_additional=values is not None,
        additional=structural(values, schemas, depth + 1) if isinstance(values, Mapping) else None,
        items=structural(items, schemas, depth + 1) if isinstance(items, Mapping) else None,
        preserves=schema.get(PRESERVE_UNKNOWN_FIELDS) is True,
        is_embedded=is_embedded,
        is_nullable=schema.get("nullable") is True,
        default=schema.get("default", NO_DEFAULT),
        list_type=text(schema[LIST_TYPE]) if LIST_TYPE in schema else "",
        list_keys=texts(schema[MAP_KEYS]) if MAP_KEYS in schema else (),
    )
    inner = [*node.properties.values(), *(each for each in (node.additional, node.items) if each is not None)]
    node.has_embedded = node.is_embedded or any(each.has_embedded for each in inner)
    node.has_lists = node.list_type in ("set", "map") or any(each.has_lists for each in inner)
    node.has_defaults = node.default is not NO_DEFAULT or any(each.has_defaults for each in inner)
    return node


def walk(
    value: Any, schema: Structural, leads: Callable[[Structural], bool], path: Path = (), place: str = ""
) -> Iterator[tuple[Any, Structural, Path, str]]:
    """The value, and those below whose schema ``leads`` to what is looked for, from the outside in.
    ``place``: the path as messages write it, with keys of maps in brackets."""
    yield value, schema, path, place
    if isinstance(value, dict):
        for key, item in value.items():
            named = schema.properties.get(key)
            inner = named or schema.additional
            if inner is not None and leads(inner):
                step = f"[{key}]" if named is None else f".{key}" if place else key
                yield from walk(item, inner, leads, (*path, key), place + step)
    elif isinstance(value, list) and schema.items is not None and leads(schema.items):
        for index, item in enumerate(value):
            yield from walk(item, schema.items, leads, (*path, index), f"{place}[{index}]")
