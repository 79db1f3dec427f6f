"""A definition in Go's memory: how texts print its parts, and when two parts are equal
(apiextensions-apiserver, pkg/apis/apiextensions/types.go, types_jsonschema.go)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from specmux_converters.go.text import json_text
from specmux_converters.json_values import mapping, text
from specmux_tools.validation.schema.ratcheting import is_same


class GoStruct(dict[str, Any]):
    """Serialized in field order; any other object is a map."""


_POINTED: Final = ("Default", "Example")


def write_in_go(value: Any) -> str:
    """Serialized like encoding/json."""
    if isinstance(value, GoStruct):
        return "{" + ",".join(f"{json_text(key)}:{write_in_go(each)}" for key, each in value.items()) + "}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(key)}:{write_in_go(value[key])}" for key in sorted(value)) + "}"
    return f"[{','.join(map(write_in_go, value))}]" if isinstance(value, list) else json_text(value)


def are_equal(left: Any, right: Any) -> bool:
    """Equality of apimachinery's Semantic.DeepEqual: nil, an empty list and an empty map are equal; structs
    are compared by field."""
    if isinstance(left, GoStruct) and isinstance(right, GoStruct):
        # Values behind pointers must be equal JSON.
        return all(
            is_same(left[key], right[key]) if key in _POINTED else are_equal(left[key], right[key])
            for key in left
        )
    if isinstance(left, GoStruct) or isinstance(right, GoStruct):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(are_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(are_equal, left, right))
    return (left in (None, [], {}) and right in (None, [], {})) or (
        type(left) is type(right) and bool(left == right)
    )


def version_in_memory(version: Mapping[str, Any]) -> GoStruct:
    holder = version.get("schema")
    return GoStruct(
        Name=text(version.get("name")),
        Served=version.get("served") is True,
        Storage=version.get("storage") is True,
        Deprecated=version.get("deprecated") is True,
        DeprecationWarning=version.get("deprecationWarning"),
        Schema=GoStruct(OpenAPIV3Schema=_one(holder.get("openAPIV3Schema")))
        if isinstance(holder, dict)
        else None,
        Subresources=_subresources(version.get("subresources")),
        AdditionalPrinterColumns=_structs(version.get("additionalPrinterColumns"), _column),
        SelectableFields=_structs(
            version.get("selectableFields"), lambda each: GoStruct(JSONPath=text(each.get("jsonPath")))
        ),
    )


def _subresources(value: Any) -> GoStruct | None:
    if not isinstance(value, Mapping):
        return None
    scale = value.get("scale")
    return GoStruct(
        Status=GoStruct() if isinstance(value.get("status"), Mapping) else None,
        Scale=GoStruct(
            SpecReplicasPath=text(scale.get("specReplicasPath")),
            StatusReplicasPath=text(scale.get("statusReplicasPath")),
            LabelSelectorPath=scale.get("labelSelectorPath"),
        )
        if isinstance(scale, Mapping)
        else None,
    )


def _column(column: Mapping[str, Any]) -> GoStruct:
    texts = {each.capitalize(): text(column.get(each)) for each in ("name", "type", "format", "description")}
    return GoStruct(texts, Priority=column.get("priority") or 0, JSONPath=text(column.get("jsonPath")))


def schema_in_memory(schema: Mapping[str, Any]) -> GoStruct:
    return GoStruct({name: read(schema.get(key)) for key, name, read in _FIELDS})


def rule_in_memory(rule: Mapping[str, Any]) -> GoStruct:
    return GoStruct(
        Rule=text(rule.get("rule")),
        Message=text(rule.get("message")),
        MessageExpression=text(rule.get("messageExpression")),
        Reason=rule.get("reason"),
        FieldPath=text(rule.get("fieldPath")),
        OptionalOldSelf=rule.get("optionalOldSelf"),
    )


def _flag(value: Any) -> bool:
    return value is True


def _as_is(value: Any) -> Any:
    return value


def _one(value: Any) -> GoStruct | None:
    return schema_in_memory(value) if isinstance(value, Mapping) else None


def _structs(value: Any, read: Callable[[Mapping[str, Any]], GoStruct]) -> list[GoStruct] | None:
    """Null items count as empty structs."""
    return [read(mapping(each)) for each in value] if isinstance(value, list) else None


def _name(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    return {key: schema_in_memory(mapping(each)) for key, each in value.items()}


def items_in_memory(value: Any) -> GoStruct | None:
    """One schema or several."""
    return None if value is None else GoStruct(Schema=_one(value), JSONSchemas=_many(value))


def _allow(value: Any) -> GoStruct | None:
    """A schema, or a boolean."""
    return None if value is None else GoStruct(Allows=value is not False, Schema=_one(value))


def _dependencies(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    return {
        key: GoStruct(Schema=_one(each), Property=each if isinstance(each, list) else None)
        for key, each in value.items()
    }


def _docs(value: Any) -> GoStruct | None:
    if not isinstance(value, Mapping):
        return None
    return GoStruct(Description=text(value.get("description")), URL=text(value.get("url")))


_many: Final = partial(_structs, read=schema_in_memory)
_FIELDS: Final[tuple[tuple[str, str, Callable[[Any], Any]], ...]] = (
    ("id", "ID", text),
    ("$schema", "Schema", text),
    ("$ref", "Ref", _as_is),
    ("description", "Description", text),
    ("type", "Type", text),
    ("nullable", "Nullable", _flag),
    ("format", "Format", text),
    ("title", "Title", text),
    ("default", "Default", _as_is),
    ("maximum", "Maximum", _as_is),
    ("exclusiveMaximum", "ExclusiveMaximum", _flag),
    ("minimum", "Minimum", _as_is),
    ("exclusiveMinimum", "ExclusiveMinimum", _flag),
    ("maxLength", "MaxLength", _as_is),
    ("minLength", "MinLength", _as_is),
    ("pattern", "Pattern", text),
    ("maxItems", "MaxItems", _as_is),
    ("minItems", "MinItems", _as_is),
    ("uniqueItems", "UniqueItems", _flag),
    ("multipleOf", "MultipleOf", _as_is),
    ("enum", "Enum", _as_is),
    ("maxProperties", "MaxProperties", _as_is),
    ("minProperties", "MinProperties", _as_is),
    ("required", "Required", _as_is),
    ("items", "Items", items_in_memory),
    ("allOf", "AllOf", _many),
    ("oneOf", "OneOf", _many),
    ("anyOf", "AnyOf", _many),
    ("not", "Not", _one),
    ("properties", "Properties", _name),
    ("additionalProperties", "AdditionalProperties", _allow),
    ("patternProperties", "PatternProperties", _name),
    ("dependencies", "Dependencies", _dependencies),
    ("additionalItems", "AdditionalItems", _allow),
    ("definitions", "Definitions", _name),
    ("externalDocs", "ExternalDocs", _docs),
    ("example", "Example", _as_is),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields", _as_is),
    ("x-kubernetes-embedded-resource", "XEmbeddedResource", _flag),
    ("x-kubernetes-int-or-string", "XIntOrString", _flag),
    ("x-kubernetes-list-map-keys", "XListMapKeys", _as_is),
    ("x-kubernetes-list-type", "XListType", _as_is),
    ("x-kubernetes-map-type", "XMapType", _as_is),
    ("x-kubernetes-validations", "XValidations", partial(_structs, read=rule_in_memory)),
)


def list_keywords(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yields the keywords that differ from Go's zero values, with Go's names and values, in Go's order."""
    for key, name, read in _FIELDS:
        value = read(schema.get(key))
        if value is not None and (read, value) not in ((text, ""), (_flag, False)):
            yield key, name, value


GO_NAMES: Final = {key: name for key, name, _ in _FIELDS}
"""Go's name of each keyword, in Go's order."""
