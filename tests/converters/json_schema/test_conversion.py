"""The rules of the transformation, one by one, on small documents."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest

from specmux_converters.document import CRD_TITLE
from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.catalogue import text_of
from specmux_converters.json_schema.document import DocumentSchemas
from specmux_converters.json_schema.forms import OPEN, STRICT, SchemaForm

KEY = GroupVersion("apis/x.test/v1")
GVK = {"group": "x.test", "version": "v1", "kind": "Thing"}
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def document(
    spec: Any, *, is_custom: bool, required: tuple[str, ...] = (), **components: Any
) -> dict[str, Any]:
    thing = {
        "type": "object",
        "required": list(required),
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": f"#/components/schemas/{META}"},
            "spec": spec,
        },
        "x-kubernetes-group-version-kind": [GVK],
    }
    meta = {"type": "object", "properties": {"name": {"type": "string"}}}
    return {
        "openapi": "3.0.0",
        "info": {"title": CRD_TITLE if is_custom else "Kubernetes", "version": "1"},
        "paths": {},
        "components": {"schemas": {"test.x.v1.Thing": thing, META: meta, **components}},
    }


def schema(found: dict[str, Any], form: SchemaForm = STRICT) -> dict[str, Any]:
    schemas = DocumentSchemas(found, KEY)
    (kind,) = (each for each in schemas.kinds if each.kind == "Thing")
    made = schemas.kind(kind, form)
    jsonschema.Draft7Validator.check_schema(made)
    return made


def takes(found: dict[str, Any], spec: Any, form: SchemaForm = STRICT) -> bool:
    thing = {"apiVersion": "x.test/v1", "kind": "Thing", "spec": spec}
    return bool(jsonschema.Draft7Validator(schema(found, form)).is_valid(thing))


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("spec", "value", "typed", "custom"),
    [
        (object_of(a=STRING), {"b": 1}, False, False),
        ({"type": "object"}, {"b": 1}, True, False),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {"b": 1}, True, True),
        (object_of(a=STRING), {"a": None}, True, True),
        (object_of(a=STRING) | {"required": ["a"]}, {"a": None}, False, False),
        (object_of(a=STRING | {"nullable": True}) | {"required": ["a"]}, {"a": None}, False, True),
        (object_of(a=STRING | {"default": "x"}) | {"required": ["a"]}, {}, False, True),
        (object_of(a=STRING | {"default": "x"}) | {"required": ["a"]}, {"a": None}, False, True),
        ({"type": "array", "items": STRING}, [None], True, False),
        ({"type": "array", "items": STRING | {"nullable": True}}, [None], True, True),
        ({"type": "object", "additionalProperties": STRING}, {"k": None}, True, True),
        ({"type": "object", "additionalProperties": True}, {"k": {"a": 1}}, True, False),
        ({"type": "object", "additionalProperties": True}, {"k": [1, [{}]]}, True, True),
        (object_of(a=STRING | {"enum": ["x"]}), {"a": ""}, True, False),
        (object_of(a=STRING | {"enum": ["x"]}), {"a": "y"}, False, False),
        (object_of(a=STRING | {"enum": ["x"]}), {"a": None}, True, True),
        (STRING | {"format": "byte"}, "YQ\n==", True, False),
        (STRING | {"format": "byte"}, "", True, False),
        ({"type": "integer", "format": "int32"}, 2**31, False, False),
        ({"type": "integer", "format": "int32", "minimum": 1}, -1, False, False),
        ({"type": "integer", "maximum": 5, "exclusiveMaximum": True}, 5, False, False),
        ({"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}, ["a", "a"], True, False),
        (STRING | {"pattern": "^(?i)yes$"}, "YES", True, True),
        ({"x-kubernetes-int-or-string": True}, "5", True, True),
        ({"x-kubernetes-int-or-string": True}, 1.5, False, False),
        (STRING | {"format": "unheard-of"}, "x", True, True),
    ],
)
def test_what_is_taken(spec: Any, value: Any, typed: bool, custom: bool) -> None:
    assert takes(document(spec, is_custom=False), value) is typed
    assert takes(document(spec, is_custom=True), value) is custom


def test_only_strict_refuses_unknown_fields() -> None:
    for is_custom in (True, False):
        found = document(object_of(a=STRING), is_custom=is_custom)
        assert takes(found, {"b": 1}, OPEN)
        assert not takes(found, {"a": 1}, OPEN)


def test_a_partial_schema_requires_nothing() -> None:
    spec = object_of(a=STRING) | {"required": ["a"], "not": {"required": ["a"]}}
    made = schema(document(spec, is_custom=True), SchemaForm(is_partial=True))
    assert jsonschema.Draft7Validator(made).is_valid({"spec": {}})
    assert not jsonschema.Draft7Validator(made).is_valid({"spec": {"z": 1}})


@pytest.mark.parametrize(
    ("branch", "default", "value", "is_taken"),
    [
        ({"required": ["a"]}, "x", {}, True),
        ({"required": ["a"]}, None, {}, False),
        ({"properties": {"a": {"enum": ["y"]}}}, "x", {}, False),
        ({"properties": {"a": {"enum": ["x"]}}}, "x", {}, True),
        ({"properties": {"a": {"not": {"enum": ["x"]}}}}, "x", {}, False),
        ({"properties": {"a": {"pattern": "^y"}}}, "x", {}, True),
    ],
)
def test_branches_of_custom_resources_see_defaults(
    branch: Any, default: Any, value: Any, is_taken: bool
) -> None:
    spec = object_of(a=STRING | ({} if default is None else {"default": default})) | {"anyOf": [branch]}
    assert takes(document(spec, is_custom=True), value) is is_taken


def test_references_stand_in_place_with_their_names() -> None:
    spec = {"allOf": [{"$ref": "#/components/schemas/a.Spec"}], "description": "mine", "default": {}}
    made = schema(document(spec, is_custom=False, **{"a.Spec": object_of(a=STRING)}))["properties"]["spec"]
    assert (made["title"], made["description"], made["type"]) == ("Spec", "mine", ["object", "null"])
    assert "definitions" not in made
    assert "default" not in made


def test_rings_of_references_become_definitions() -> None:
    ring = object_of(inner={"$ref": "#/components/schemas/a.Ring"}, name=STRING)
    found = document({"$ref": "#/components/schemas/a.Ring"}, is_custom=False, **{"a.Ring": ring})
    assert list(schema(found)["definitions"]) == ["a.Ring"]
    assert takes(found, {"inner": {"inner": {"name": "x"}}})
    assert not takes(found, {"inner": {"inner": {"nam": "x"}}})


@pytest.mark.parametrize("below", [STRING, {"$ref": "#/components/schemas/pruned"}])
def test_a_component_may_be_called_like_a_definition_of_ours(below: dict[str, Any]) -> None:
    found = document({"$ref": "#/components/schemas/pruned"}, is_custom=False, pruned=object_of(a=below))
    assert takes(found, {"a": "x" if below is STRING else {"a": {}}})
    assert not takes(found, {"b": 1})


def test_references_that_multiply_are_not_written_out() -> None:
    parts = {
        f"a.P{level}": object_of(
            **{name: {"$ref": f"#/components/schemas/a.P{level + 1}"} for name in ("x", "y", "z")}
        )
        for level in range(40)
    }
    found = document({"$ref": "#/components/schemas/a.P0"}, is_custom=False, **parts)
    assert len(text_of(schema(found))) < 100_000
    assert takes(found, {"x": {"y": {}}})
    assert not takes(found, {"x": {"q": {}}})


def test_a_long_chain_of_references_is_not_written_out_either() -> None:
    parts = {
        f"a.P{level}": object_of(x={"$ref": f"#/components/schemas/a.P{level + 1}"}) for level in range(150)
    }
    found = document({"$ref": "#/components/schemas/a.P0"}, is_custom=False, **parts)
    assert len(schema(found)["definitions"]) == 151
    endless = {
        f"a.P{level}": object_of(x={"$ref": f"#/components/schemas/a.P{level + 1}"}) for level in range(3000)
    }
    with pytest.raises(LimitExceeded):
        schema(document({"$ref": "#/components/schemas/a.P0"}, is_custom=False, **endless))


def test_fields_may_be_called_like_keywords() -> None:
    names = {
        "$ref": STRING,
        "properties": object_of(properties=STRING),
        "required": {"type": "boolean"},
        "default": STRING,
    }
    for is_custom in (True, False):
        found = document(object_of(**names), is_custom=is_custom)
        assert takes(
            found, {"$ref": "a", "properties": {"properties": "b"}, "required": True, "default": "c"}
        )
        assert not takes(found, {"$ref": 1})


def test_below_a_status_of_controllers_nothing_is_required() -> None:
    for is_custom in (True, False):
        found = document({}, is_custom=is_custom, required=("status",))
        thing = found["components"]["schemas"]["test.x.v1.Thing"]
        thing["properties"]["status"] = object_of(a=STRING) | {"required": ["a"]}
        with_status = copy.deepcopy(found)
        with_status["paths"] = {
            "/apis/x.test/v1/things/{name}/status": {"get": {"x-kubernetes-group-version-kind": GVK}}
        }
        thing = {"apiVersion": "x.test/v1", "kind": "Thing"}
        for each, value, is_taken in (
            (found, {}, False), (found, None, False), (with_status, {}, True), (with_status, None, True),
        ):  # fmt: skip
            made = schema(each)
            assert jsonschema.Draft7Validator(made).is_valid(thing | {"status": value}) is is_taken


def test_the_root_names_its_kind() -> None:
    for is_custom in (True, False):
        made = schema(document({}, is_custom=is_custom))
        assert made["required"] == ["apiVersion", "kind"]
        assert made["properties"]["apiVersion"]["enum"] == ["x.test/v1"]
        assert made["x-kubernetes-group-version-kind"] == [GVK]
        assert "$id" not in made


def test_deprecated_fields_say_so() -> None:
    made = schema(
        document(object_of(a=STRING | {"description": "Old.\nDeprecated: use b."}), is_custom=False)
    )
    assert made["properties"]["spec"]["properties"]["a"]["deprecationMessage"] == "use b."


def test_requests_are_no_kinds_and_the_document_is_left_as_it_is() -> None:
    found = document({}, is_custom=False)
    for kind in ("WatchEvent", "DeleteOptions"):
        found["components"]["schemas"][f"a.{kind}"] = {
            "type": "object",
            "x-kubernetes-group-version-kind": [GVK | {"kind": kind}],
        }
    before = copy.deepcopy(found)
    schemas = DocumentSchemas(found, KEY)
    assert [each.kind for each in schemas.kinds] == ["Thing"]
    for form in (STRICT, OPEN, SchemaForm(is_named=True)):
        schemas.kind(schemas.kinds[0], form)
    assert found == before


def test_a_component_that_is_no_object_is_refused() -> None:
    schemas = DocumentSchemas({"components": {"schemas": {"a": 1}}}, KEY)
    with pytest.raises(InvalidDocument):
        schemas.component("a", STRICT)
