from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator

from shared_data import documents, load, shared
from specmux_converters.errors import InvalidDocument
from specmux_converters.merge import Conflict, Merged, Renamed, merge


def document(path: str, schemas: Any = None, **parts: Any) -> Any:
    name = next(iter(schemas or {"none": {}}))
    media = {"schema": {"$ref": f"#/components/schemas/{name}"}} if schemas else {}
    operation = {"responses": {"200": {"description": "", "content": {"a/a": media}}}}
    result = {"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {path: {"get": operation}}}
    return {**result, **({"components": {"schemas": schemas}} if schemas else {}), **parts}


def schemas_of(merged: Merged) -> Any:
    return merged.document["components"]["schemas"]


def used(merged: Merged, path: str) -> str:
    content = merged.document["paths"][path]["get"]["responses"]["200"]["content"]["a/a"]
    ref: str = content["schema"]["$ref"]
    return ref.removeprefix("#/components/schemas/")


def test_equal_components_are_shared() -> None:
    merged = merge(
        {"b": document("/b", {"A": {"type": "string"}}), "a": document("/a", {"A": {"type": "string"}})}
    )  # type: ignore[dict-item]
    assert schemas_of(merged) == {"A": {"type": "string"}}
    assert merged.renamed == merged.conflicts == ()
    assert list(merged.document["paths"]) == ["/a", "/b"]


def test_unequal_components_are_renamed_in_the_order_of_group_versions() -> None:
    variants = {
        key: document(f"/{key}", {"A": {"title": title}}) for key, title in zip("cab", "xyy", strict=True)
    }
    variants["d"] = document("/d", {"A": {"title": "z"}, "A_v2": {}})
    merged = merge(variants)  # type: ignore[arg-type]
    assert schemas_of(merged) == {
        "A": {"title": "y"},
        "A_v3": {"title": "x"},
        "A_v2": {},
        "A_v4": {"title": "z"},
    }
    assert [used(merged, f"/{key}") for key in "abcd"] == ["A", "A", "A_v3", "A_v4"]
    assert merged.renamed == (Renamed("c", "schemas", "A", "A_v3"), Renamed("d", "schemas", "A", "A_v4"))  # type: ignore[arg-type]
    assert orjson.dumps(merge(dict(reversed(variants.items()))).document) == orjson.dumps(merged.document)  # type: ignore[arg-type]


def test_component_is_another_one_when_what_it_refers_to_is() -> None:
    def with_leaf(path: str, title: str) -> Any:
        ref = {"$ref": "#/components/schemas/Leaf"}
        pod = {"properties": {"leaf": ref, "self": {"$ref": "#/components/schemas/Pod"}}}
        return document(path, {"Pod": pod, "Leaf": {"title": title}})

    merged = merge({"a": with_leaf("/a", "x"), "b": with_leaf("/b", "y"), "c": with_leaf("/c", "x")})  # type: ignore[dict-item]
    assert used(merged, "/b") == "Pod_v2"
    assert used(merged, "/c") == "Pod"
    refs = schemas_of(merged)["Pod_v2"]["properties"]
    assert refs == {
        "leaf": {"$ref": "#/components/schemas/Leaf_v2"},
        "self": {"$ref": "#/components/schemas/Pod_v2"},
    }


def test_data_is_not_renamed() -> None:
    ref = {"$ref": "#/components/schemas/A"}
    data = {
        "title": "y",
        "example": ref,
        "default": ref,
        "enum": [ref],
        "x-a": ref,
        "properties": {"$ref": ref, "example": ref},
    }
    merged = merge({"a": document("/a", {"A": {}}), "b": document("/b", {"A": data})})  # type: ignore[dict-item]
    renamed = {"$ref": "#/components/schemas/A_v2"}
    assert schemas_of(merged)["A_v2"] == {**data, "properties": {"$ref": renamed, "example": renamed}}


def test_names_in_references_are_escaped() -> None:
    deep = {"a/b": {"properties": {"p": {}}, "items": {"$ref": "#/components/schemas/a~1b/properties/p"}}}
    merged = merge({"a": document("/a", {"a/b": {}}), "b": document("/b", deep)})  # type: ignore[dict-item]
    assert schemas_of(merged)["a/b_v2"]["items"] == {"$ref": "#/components/schemas/a~1b_v2/properties/p"}


def test_security_schemes_are_renamed_in_requirements() -> None:
    def secured(path: str, name: str) -> Any:
        schemes = {"k": {"type": "apiKey", "in": "header", "name": name}}
        return document(path, components={"securitySchemes": schemes}, security=[{"k": []}])

    merged = merge({"a": secured("/a", "x"), "b": secured("/b", "y"), "c": document("/c")})  # type: ignore[dict-item]
    found = {path: item["get"].get("security") for path, item in merged.document["paths"].items()}
    assert found == {"/a": [{"k": []}], "/b": [{"k_v2": []}], "/c": None}
    assert "security" not in merged.document


def test_what_all_documents_say_stays_at_the_top() -> None:
    servers = [{"url": "/x"}]
    merged = merge({"a": document("/a", servers=servers), "b": document("/b", servers=servers)})  # type: ignore[dict-item]
    assert merged.document["servers"] == servers
    assert "servers" not in merged.document["paths"]["/a"]["get"]


def test_conflicts_are_reported() -> None:
    first = document("/a", tags=[{"name": "x"}])
    second = document("/a", info={"title": "u", "version": "1"}, tags=[{"name": "y"}])
    second["paths"]["/a"]["get"]["operationId"] = "get"
    third = document("/c")
    third["paths"]["/c"]["get"]["operationId"] = "get"
    fourth = document("/d")
    fourth["paths"]["/d"]["get"]["operationId"] = "get"
    merged = merge({"a": first, "b": second, "c": third, "d": fourth})  # type: ignore[dict-item]
    assert merged.document["info"]["title"] == "t"
    assert merged.document["tags"] == [{"name": "x"}, {"name": "y"}]
    assert merged.conflicts == (
        Conflict("b", "/info", "another document says it differently"),  # type: ignore[arg-type]
        Conflict("b", "/paths/~1a", "another document has the path"),  # type: ignore[arg-type]
        Conflict("d", "/paths/~1d/get/operationId", "another operation has the id; left out"),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("parts", [{"paths": []}, {"components": 1}, {"components": {"schemas": []}}])
def test_document_of_another_shape_is_refused(parts: Any) -> None:
    with pytest.raises(InvalidDocument):
        merge({"a": document("/a", **parts)})  # type: ignore[dict-item]


@shared
@pytest.mark.parametrize("release", ["1.29", "1.35"])
def test_all_documents_of_a_release_become_one(release: str, tally: Callable[[str, int], None]) -> None:
    native = {key: load(path) for key, path in documents(release).items()}
    merged = merge(native)  # type: ignore[arg-type]
    assert sorted(merged.document["paths"]) == sorted(
        path for each in native.values() for path in each["paths"]
    )
    schemas = schemas_of(merged)
    for key, each in native.items():
        for name, schema in each["components"]["schemas"].items():
            assert schemas[name] == schema, (key, name)
    assert merged.renamed == merged.conflicts == ()
    tally(f"merge: documents of {release} in one, components {len(schemas)}", len(native))


@shared
def test_release_with_another_one_is_valid_and_whole() -> None:
    """Two releases of one group-version: many unequal components of one name."""
    old, new = (load(documents(release)["apis/policy/v1"]) for release in ("1.29", "1.35"))
    new["paths"] = {path.replace("/v1/", "/v2/"): item for path, item in new["paths"].items()}
    merged = merge({"apis/policy/v1": old, "apis/policy/v2": new})  # type: ignore[dict-item]
    assert len(merged.renamed) > 10
    text = orjson.dumps(merged.document)
    names = {part.split(b'"')[0].decode() for part in text.split(b'"#/components/schemas/')[1:]}
    assert names <= schemas_of(merged).keys()
    errors = [
        error
        for error in OpenAPIV30SpecValidator(merged.document).iter_errors()
        if "required property" not in error.message
    ]
    assert errors == []
