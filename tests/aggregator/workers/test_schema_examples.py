"""The example in a kind's JSON Schema is an object that the schema takes, or there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest

from data import catalogue_documents as catalogue
from sampling import ends
from shared_data import needs
from specmux_converters.document import CRD_TITLE
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.document import DocumentSchemas
from specmux_converters.json_schema.forms import OPEN, STRICT, SchemaForm
from specmux_tools.json_schema_job import example_of

FORMS = (STRICT, OPEN, SchemaForm(is_named=True))
HEAD = {"apiVersion": "x.test/v1", "kind": "Bed", "metadata": {"name": ""}}


def document(spec: dict[str, Any], *, is_custom: bool = True) -> dict[str, Any]:
    text = {"type": "string"}
    bed = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": text,
            "kind": text,
            "metadata": {"type": "object", "properties": {"name": text}},
            "spec": {"type": "object", "required": sorted(spec), "properties": spec},
        },
        "x-kubernetes-group-version-kind": [{"group": "x.test", "version": "v1", "kind": "Bed"}],
    }
    return {
        "openapi": "3.0.0",
        "info": {"title": CRD_TITLE if is_custom else "Kubernetes", "version": "1"},
        "paths": {},
        "components": {"schemas": {"test.x.v1.Bed": bed}},
    }


def schema(found: dict[str, Any], form: SchemaForm = STRICT) -> dict[str, Any]:
    schemas = DocumentSchemas(found, GroupVersion("apis/x.test/v1"), example_of)
    return schemas.kind(schemas.kinds[0], form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_custom", [True, False])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"type": "string"}, ""),
        ({"type": "string", "default": "no"}, "no"),
        ({"type": "string", "enum": ["b", "a"]}, "b"),
        ({"type": "integer", "minimum": 3}, 3),
        ({"type": "string", "format": "date-time"}, "1970-01-01T00:00:00Z"),
        ({"type": "array", "items": {"type": "string"}}, []),
    ],
)
def test_it_is_the_skeleton(form: SchemaForm, is_custom: bool, field: dict[str, Any], value: Any) -> None:
    made = schema(document({"a": field}, is_custom=is_custom), form)
    assert made["examples"] == [HEAD | {"spec": {"a": value}}]
    assert jsonschema_rs.Draft7Validator(made, validate_formats=True).is_valid(made["examples"][0])


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string", "minLength": 1},
        {"type": "string", "pattern": "^[a-z]+$"},
        {"type": "string", "format": "hostname"},
        {"type": "string", "format": "ipv4"},
        {"type": "string", "default": "x" * 20_000},
    ],
)
def test_there_is_none_where_the_schema_refuses_it_or_it_is_long(field: dict[str, Any]) -> None:
    assert "examples" not in schema(document({"a": field}))


def test_patches_and_whoever_asks_for_none_have_none() -> None:
    found = document({"a": {"type": "string"}})
    assert "examples" not in schema(found, SchemaForm(is_partial=True))
    schemas = DocumentSchemas(found, GroupVersion("apis/x.test/v1"))
    assert "examples" not in schemas.kind(schemas.kinds[0], STRICT)


def test_a_pattern_that_backtracks_takes_no_time() -> None:
    slow = {"type": "string", "pattern": "^(a+)+$", "default": "a" * 64 + "!"}
    assert "examples" not in schema(document({"a": slow})), "after 2 ** 64 steps"


@pytest.mark.parametrize("form", ends(FORMS), ids=lambda form: form.name)
def test_every_kind_of_the_release_has_one(form: SchemaForm, tally: Callable[[str, int], None]) -> None:
    count = 0
    for key, found in catalogue.of_kubernetes().items():
        schemas = DocumentSchemas(found, key, example_of)
        for kind in schemas.kinds:
            made = schemas.kind(kind, form)
            judge = jsonschema_rs.Draft7Validator(made, validate_formats=True)
            assert [judge.is_valid(each) for each in made["examples"]] == [True], kind
            count += 1
    assert count > 150
    tally(f"examples of the release, {form.name}: taken by their schemas", count)


@pytest.mark.long
@needs("data/crds")
def test_every_example_of_a_custom_resource_is_taken(tally: Callable[[str, int], None]) -> None:
    count = 0
    for owner, kind in catalogue.kinds().values():
        for each in owner.kind(kind, STRICT).get("examples", ()):
            assert catalogue.validator(kind.api_version, kind.kind).is_valid(each), kind
            count += 1
    assert count > 300
    tally("examples of all kinds: taken by their schemas", count)
