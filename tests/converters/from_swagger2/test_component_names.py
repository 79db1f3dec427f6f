"""Names that OpenAPI 3.0 does not allow, and all that says them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_converters.from_swagger2.conversion import convert_whole
from specmux_converters.from_swagger2.reading.component_names import allowed_names
from specmux_converters.losses import Grade
from specmux_converters.references import references

ALLOWED = re.compile(r"[A-Za-z0-9._-]+")


def swagger(**parts: Any) -> dict[str, Any]:
    return {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}, **parts}


def definition(name: str) -> dict[str, str]:
    return {"$ref": f"#/definitions/{name}"}


@given(st.lists(st.text(alphabet="aB.-_ «»/~%é", max_size=4), unique=True))
def test_each_name_gets_one_of_its_own(names: list[str]) -> None:
    chosen = allowed_names(names)
    final = [chosen.get(name, name) for name in names]
    assert all(ALLOWED.fullmatch(name) for name in final)
    assert len(set(final)) == len(names)
    assert chosen == allowed_names(reversed(names))
    assert chosen.keys() == {name for name in names if not ALLOWED.fullmatch(name)}


@pytest.mark.parametrize(
    ("name", "new"), [("Page«User»", "Page_User"), ("List[T]", "List_T"), ("a/b", "a_b"), ("a b", "a_b")]
)
def test_a_name_stays_readable(name: str, new: str) -> None:
    assert allowed_names([name, "Other"]) == {name: new}


def test_a_name_that_is_taken_gets_a_hash_that_no_order_changes() -> None:
    chosen = allowed_names(["a b", "a/b", "x", "x!"])
    assert sorted(chosen) == ["a b", "a/b", "x!"]
    assert re.fullmatch(r"a_b\.[0-9a-f]{12}", chosen["a b"])
    assert re.fullmatch(r"x\.[0-9a-f]{12}", chosen["x!"])


def test_all_that_says_a_name_follows_it() -> None:
    operation = {
        "security": [{"my key": []}],
        "parameters": [{"$ref": "#/parameters/page size"}, {"$ref": "#/parameters/a body"}],
        "responses": {"200": {"$ref": "#/responses/not found"}},
    }
    whole = convert_whole(
        swagger(
            paths={"/a": {"put": operation}},
            security=[{"my key": []}],
            securityDefinitions={"my key": {"type": "apiKey", "in": "header", "name": "k"}},
            parameters={
                "page size": {"in": "query", "name": "n", "type": "string"},
                "a body": {"in": "body", "name": "body", "schema": definition("Page%C2%ABUser%C2%BB")},
            },
            responses={"not found": {"description": "d", "schema": definition("List[T]")}},
            definitions={
                "Page«User»": {"properties": {"next": definition("Page«User»")}},
                "List[T]": {"type": "array", "items": definition("Page«User»")},
            },
        )
    )
    components = whole.document["components"]
    put = whole.document["paths"]["/a"]["put"]
    assert put["security"] == whole.document["security"] == [{"my_key": []}]
    assert put["parameters"] == [{"$ref": "#/components/parameters/page_size"}]
    assert put["requestBody"] == {"$ref": "#/components/requestBodies/a_body"}
    assert put["responses"]["200"] == {"$ref": "#/components/responses/not_found"}
    assert {kind: [*named] for kind, named in components.items()} == {
        "parameters": ["page_size"],
        "requestBodies": ["a_body"],
        "responses": ["not_found"],
        "schemas": ["List_T", "Page_User"],
        "securitySchemes": ["my_key"],
    }
    refs = references(whole.document, "document")
    assert all(ref.split("/")[3] in components[ref.split("/")[2]] for ref in refs)
    assert {(loss.pointer, loss.construct, loss.grade) for loss in whole.losses} == {
        (pointer, "component name", Grade.NOTE)
        for pointer in (
            "/definitions/List[T]",
            "/definitions/Page«User»",
            "/parameters/a body",
            "/parameters/page size",
            "/responses/not found",
            "/securityDefinitions/my key",
        )
    }


def test_a_name_stays_for_kubernetes_and_is_reported() -> None:
    document = swagger(definitions={"Page«User»": {"type": "object"}})
    whole = convert_whole(document, profile="kubernetes")
    assert [*whole.document["components"]["schemas"]] == ["Page«User»"]
    assert [(loss.pointer, loss.grade) for loss in whole.losses] == [("/definitions/Page«User»", Grade.NOTE)]


def test_a_discriminator_maps_the_names_that_its_property_has() -> None:
    whole = convert_whole(
        swagger(
            definitions={
                "Base<T>": {"discriminator": "kind", "properties": {"kind": {"type": "string"}}},
                "Child<T>": {"allOf": [definition("Base<T>"), {"type": "object"}]},
                "Grandchild<T>": {"allOf": [definition("Child<T>")]},
                "Plain": {"allOf": [definition("Base<T>")]},
                "Stranger<T>": {"type": "object"},
            }
        )
    )
    assert whole.document["components"]["schemas"]["Base_T"]["discriminator"] == {
        "propertyName": "kind",
        "mapping": {
            "Base<T>": "#/components/schemas/Base_T",
            "Child<T>": "#/components/schemas/Child_T",
            "Grandchild<T>": "#/components/schemas/Grandchild_T",
        },
    }
