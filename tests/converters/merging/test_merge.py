from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator

from shared_data import NATIVE, documents, load
from specmux_converters.errors import InvalidDocument
from specmux_converters.merging import ComponentRename, Conflict, MergeResult, merge

OLDEST = NATIVE[0]


def document(path: str, schemas: Any = None, **parts: Any) -> Any:
    name = next(iter(schemas or {"none": {}}))
    media = {"schema": {"$ref": f"#/components/schemas/{name}"}} if schemas else {}
    operation = {"responses": {"200": {"description": "", "content": {"a/a": media}}}}
    result = {"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {path: {"get": operation}}}
    return {**result, **({"components": {"schemas": schemas}} if schemas else {}), **parts}


def schemas_of(merged: MergeResult) -> Any:
    return merged.document["components"]["schemas"]


def used(merged: MergeResult, path: str) -> str:
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
    assert merged.renamed == (
        ComponentRename("c", "schemas", "A", "A_v3"),
        ComponentRename("d", "schemas", "A", "A_v4"),
    )  # type: ignore[arg-type]
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
        Conflict("b", "/paths/~1a/get", "another document has the operation"),  # type: ignore[arg-type]
    )


def get(path: str, **fields: Any) -> Any:
    return {path: {"get": {"responses": {"200": {"description": ""}}, **fields}}}


def of(**documents: Any) -> MergeResult:
    return merge({key: {**document("/unused"), **value} for key, value in documents.items()})  # type: ignore[misc]


def test_ids_of_operations_are_renamed_and_links_follow() -> None:
    def linked(path: str, operation_id: str) -> Any:
        links = {"next": {"operationId": operation_id}}
        responses = {"200": {"description": "", "links": {"l": {"$ref": "#/components/links/next"}}}}
        paths = get(path, operationId=operation_id, responses=responses)
        return {"paths": paths, "components": {"links": links}}

    merged = of(a=linked("/a", "get"), b=linked("/b", "get"), c=linked("/c", "get_v2"), d=linked("/a", "get"))
    ids = {path: item["get"]["operationId"] for path, item in merged.document["paths"].items()}
    assert ids == {"/a": "get", "/b": "get_v3", "/c": "get_v2"}
    found = {name: link["operationId"] for name, link in merged.document["components"]["links"].items()}
    assert found == {"next": "get", "next_v2": "get_v3", "next_v3": "get_v2"}
    assert ComponentRename("b", "operationIds", "get", "get_v3") in merged.renamed  # type: ignore[arg-type]
    assert merged.conflicts == ()


def test_id_that_one_document_has_twice_is_left_out() -> None:
    merged = of(a={"paths": {**get("/a", operationId="x"), **get("/b", operationId="x")}})
    assert "operationId" not in merged.document["paths"]["/b"]["get"]
    (conflict,) = merged.conflicts
    assert conflict.pointer == "/paths/~1b/get/operationId"


def test_operations_of_one_path_are_joined() -> None:
    post = {"/a": {"post": get("/a")["/a"]["get"]}}
    merged = of(
        a={"paths": get("/a")}, b={"paths": post}, c={"paths": {"/a": {**post["/a"], "summary": "c"}}}
    )
    assert merged.document["paths"] == {"/a": {**get("/a")["/a"], **post["/a"]}}
    assert merged.conflicts == (Conflict("c", "/paths/~1a", "another document has the path"),)  # type: ignore[arg-type]


def test_security_that_reads_alike_means_each_documents_own_scheme() -> None:
    def secured(path: str, name: str) -> Any:
        schemes = {"k": {"type": "apiKey", "in": "header", "name": name}}
        paths = get(path, callbacks={"c": {"{$url}": {"post": {"security": [{"k": []}], "responses": {}}}}})
        return {"components": {"securitySchemes": schemes}, "security": [{"k": []}], "paths": paths}

    merged = of(a=secured("/a", "x"), b=secured("/b", "y"))
    found = {path: item["get"]["security"] for path, item in merged.document["paths"].items()}
    assert found == {"/a": [{"k": []}], "/b": [{"k_v2": []}]}
    callback = merged.document["paths"]["/b"]["get"]["callbacks"]["c"]["{$url}"]
    assert callback["post"]["security"] == [{"k_v2": []}]
    assert "security" not in merged.document


def test_servers_of_a_path_stay_before_those_of_its_document() -> None:
    paths = {"/a": {**get("/a")["/a"], "servers": [{"url": "/path"}]}, **get("/b")}
    merged = of(a={"paths": paths, "servers": [{"url": "/document"}]}, b={"paths": get("/c"), "servers": []})
    assert "servers" not in merged.document["paths"]["/a"]["get"]
    assert merged.document["paths"]["/b"]["get"]["servers"] == [{"url": "/document"}]
    assert "servers" not in merged.document["paths"]["/c"]["get"]


def test_discriminators_name_what_was_renamed() -> None:
    alternatives = [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}]
    mapping = {"dog": "Dog", "d": "#/components/schemas/Dog", "file": "Dog.json"}

    def pets(path: str, title: str, **discriminator: Any) -> Any:
        pet = {"oneOf": alternatives, "discriminator": {"propertyName": "kind", **discriminator}}
        schemas = {"Pet": pet, "Cat": {"title": title}, "Dog": {"title": title}}
        return {"paths": get(path), "components": {"schemas": schemas}}

    others = {"d": pets("/d", "x"), "e": pets("/e", "x")}
    merged = of(a=pets("/a", "x"), b=pets("/b", "y"), c=pets("/c", "y", mapping=mapping), **others)
    cat, dog = "#/components/schemas/Cat_v2", "#/components/schemas/Dog_v2"
    schemas = schemas_of(merged)
    assert schemas["Pet"]["discriminator"] == {"propertyName": "kind"}
    assert schemas["Pet_v2"]["discriminator"]["mapping"] == {"Cat": cat, "Dog": dog}
    assert schemas["Pet_v3"]["discriminator"]["mapping"] == {
        "dog": "Dog_v2",
        "d": dog,
        "file": "Dog.json",
        "Cat": cat,
        "Dog": dog,
    }


def test_what_most_documents_have_keeps_its_name() -> None:
    def of_title(path: str, title: str) -> Any:
        return {"paths": get(path), "components": {"schemas": {"A": {"title": title}}}}

    merged = of(a=of_title("/a", "odd"), b=of_title("/b", "most"), c=of_title("/c", "most"))
    assert schemas_of(merged) == {"A": {"title": "most"}, "A_v2": {"title": "odd"}}
    assert [(each.group_version, each.new_name) for each in merged.renamed] == [("a", "A_v2")]
    tie = of(a=of_title("/a", "x"), b=of_title("/b", "y"))
    assert schemas_of(tie) == {"A": {"title": "x"}, "A_v2": {"title": "y"}}


def test_references_that_are_escaped_for_a_uri_are_followed() -> None:
    def generic(path: str, title: str) -> Any:
        schemas = {"L<a/b>": {"title": title}, "User": {"$ref": "#/components/schemas/L%3Ca~1b%3E"}}
        return {"paths": get(path), "components": {"schemas": schemas}}

    schemas = schemas_of(of(a=generic("/a", "x"), b=generic("/b", "y")))
    assert schemas["User_v2"] == {"$ref": "#/components/schemas/L%3Ca~1b%3E_v2"}
    assert schemas["L<a/b>_v2"] == {"title": "y"}


def test_true_is_not_one() -> None:
    def titled(path: str, value: Any) -> Any:
        return document(path, {"A": {"default": value}}, **{"x-value": value})

    merged = of(a=titled("/a", 1), b=titled("/b", True))
    assert orjson.dumps(schemas_of(merged)) == b'{"A":{"default":1},"A_v2":{"default":true}}'
    assert [each.pointer for each in merged.conflicts] == ["/x-value"]


def test_tags_of_one_name_are_one() -> None:
    x, other, y = {"name": "x"}, {"name": "x", "description": "other"}, {"name": "y"}
    merged = of(a={"tags": [x]}, b={"tags": [y, other]}, c={"tags": "none"})
    assert merged.document["tags"] == [x, y]
    assert [each.pointer for each in merged.conflicts] == ["/tags/1", "/tags"]


def test_extensions_and_versions_are_kept_and_reported() -> None:
    first = {"components": {"x-a": 1}, "paths": {"x-p": 1}, "openapi": "3.0.9"}
    second = {"components": {"x-a": 2, "x-b": 2}, "paths": {"x-p": 2}, "openapi": "3.0.10"}
    merged = of(a=first, b=second, c={"openapi": "3.1.0"})
    assert merged.document["components"] == {"x-a": 1, "x-b": 2}
    assert merged.document["openapi"] == "3.1.0"
    pointers = {(each.group_version, each.pointer) for each in merged.conflicts}
    assert pointers == {("b", "/components/x-a"), ("b", "/paths/x-p"), ("c", "/openapi")}
    assert of(a=first, b={"openapi": "3.0.10"}).document["openapi"] == "3.0.10"


def test_nothing_is_refused() -> None:
    with pytest.raises(InvalidDocument):
        merge({})


@pytest.mark.timeout(30)
@pytest.mark.parametrize("is_cycle", [True, False])
def test_long_chains_of_references_take_no_quadratic_time(is_cycle: bool) -> None:
    def chain(path: str, title: str) -> Any:
        count = 10_000
        schemas: Any = {
            f"S{index}": {"items": {"$ref": f"#/components/schemas/S{index + 1}"}} for index in range(count)
        }
        last = {"items": {"$ref": "#/components/schemas/S0"}} if is_cycle else {}
        return document(path, {**schemas, f"S{count}": {"title": title, **last}})

    merged = merge({"a": chain("/a", "x"), "b": chain("/b", "y"), "c": chain("/c", "x")})  # type: ignore[dict-item]
    assert len(schemas_of(merged)) == 2 * 10_001
    assert [used(merged, f"/{key}") for key in "abc"] == ["S0", "S0_v2", "S0"]


@pytest.mark.parametrize("parts", [{"paths": []}, {"components": 1}, {"components": {"schemas": []}}])
def test_document_of_another_shape_is_refused(parts: Any) -> None:
    with pytest.raises(InvalidDocument):
        merge({"a": document("/a", **parts)})  # type: ignore[dict-item]


@pytest.mark.parametrize("release", [OLDEST, "1.35"])
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


def test_release_with_another_one_is_valid_and_whole() -> None:
    """Two releases of one group-version: many unequal components of one name."""
    old, new = (load(documents(release)["apis/policy/v1"]) for release in (OLDEST, "1.35"))
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
