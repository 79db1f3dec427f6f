"""Each construct of Swagger 2.0 and what it becomes, in the profile that the row belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from specmux_converters.group_versions import GroupVersion
from specmux_converters.swagger2.conversion import WholeConversion, convert, convert_whole
from specmux_converters.swagger2.source import Profile


def swagger(**parts: Any) -> dict[str, Any]:
    return {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}, **parts}


def operation(
    parameters: Any = None, *, profile: Profile = "oas", shared: Any = None, **fields: Any
) -> dict[str, Any]:
    """What one operation becomes."""
    node = {"responses": {"200": {"description": "OK"}}, **fields}
    if parameters is not None:
        node["parameters"] = parameters
    whole = convert_whole(swagger(paths={"/a": {"post": node}}, **(shared or {})), profile=profile)
    result: dict[str, Any] = whole.document["paths"]["/a"]["post"]
    return result


def parameter(profile: Profile = "oas", **fields: Any) -> dict[str, Any]:
    node = {"name": "p", "in": "query", "type": "string", **fields}
    result: dict[str, Any] = operation([node], profile=profile)["parameters"][0]
    return result


def schema(node: Any, *, profile: Profile = "oas", **others: Any) -> Any:
    return whole_schema(node, profile=profile, **others).document["components"]["schemas"]["S"]


def whole_schema(node: Any, *, profile: Profile = "oas", **others: Any) -> WholeConversion:
    return convert_whole(swagger(definitions={"S": node, **others}), profile=profile)


def constructs(whole: WholeConversion) -> list[tuple[str, str]]:
    return [(loss.pointer, loss.construct) for loss in whole.losses]


BOTH = pytest.mark.parametrize("profile", ["oas", "kubernetes"])
PET = {"$ref": "#/definitions/S"}
PET3 = {"$ref": "#/components/schemas/S"}


# Servers


@pytest.mark.parametrize(
    ("fields", "urls"),
    [
        ({"host": "h", "basePath": "/b", "schemes": ["https", "http"]}, ["https://h/b", "http://h/b"]),
        ({"host": "h", "basePath": "/"}, ["//h"]),
        ({"host": "h", "schemes": ["wss"]}, ["wss://h"]),
        ({"basePath": "/b"}, ["/b"]),
        ({"basePath": "/"}, None),
        ({}, None),
    ],
)
def test_servers_are_schemes_times_host_and_base_path(fields: Any, urls: list[str] | None) -> None:
    whole = convert_whole(swagger(**fields))
    expected = None if urls is None else [{"url": url} for url in urls]
    assert whole.document.get("servers") == expected
    assert whole.losses == ()


def test_schemes_without_a_host_are_a_loss() -> None:
    whole = convert_whole(swagger(schemes=["https"]))
    assert constructs(whole) == [("/schemes", "schemes")]


def test_operation_schemes_are_servers() -> None:
    found = operation(schemes=["http"], shared={"host": "h", "basePath": "/b", "schemes": ["https"]})
    assert found["servers"] == [{"url": "http://h/b"}]


def test_kubernetes_documents_have_no_servers_and_no_security_and_say_so() -> None:
    node = {"responses": {"200": {"description": ""}}, "schemes": ["https"]}
    document = swagger(
        host="h", basePath="/b", schemes=["http"], security=[{"k": []}], paths={"/a": {"get": node}}
    )
    whole = convert_whole(document, profile="kubernetes")
    assert whole.document.keys() == {"openapi", "info", "paths"}
    assert constructs(whole) == [
        ("/basePath", "basePath"),
        ("/host", "host"),
        ("/paths/~1a/get/schemes", "operation schemes"),
        ("/schemes", "schemes"),
        ("/security", "security"),
        ("/security/0/k", "security"),
    ]


# Document


def test_tags_security_external_docs_and_extensions_are_copied() -> None:
    parts = {
        "tags": [{"name": "a", "x-t": 1}],
        "security": [{"k": []}],
        "externalDocs": {"url": "u", "x-e": 1},
        "x-top": {"$ref": "#/definitions/none"},
    }
    whole = convert_whole(swagger(**parts))
    assert {key: whole.document[key] for key in parts} == parts
    assert constructs(whole) == [("/security/0/k", "security")]


def test_terms_of_service_that_are_no_url_are_copied() -> None:
    info = {"title": "t", "version": "1", "termsOfService": "be nice", "contact": {"name": "n"}, "x-i": [1]}
    assert convert_whole(swagger(info=info)).document["info"] == info


def test_version_that_yaml_made_a_number_of_is_written_as_text() -> None:
    whole = convert_whole(swagger(info={"title": "t", "version": 1.0}))
    assert whole.document["info"] == {"title": "t", "version": "1.0"}
    assert constructs(whole) == [("/info/version", "number")]


@pytest.mark.parametrize(("info", "place"), [({}, ""), ({"info": {}}, "/info")])
def test_what_info_lacks_is_reported_at_a_place_that_is_there(info: Any, place: str) -> None:
    whole = convert_whole({"swagger": "2.0", "paths": {}, **info})
    assert whole.document["info"] == {"title": "", "version": ""}
    assert constructs(whole) == [(place, "info without title"), (place, "info without version")]


def test_operation_fields_are_copied() -> None:
    fields = {
        "tags": ["a"], "summary": "s", "description": "d", "operationId": "o", "deprecated": True,
        "security": [{"k": ["x"]}], "externalDocs": {"url": "u"}, "x-o": {"default": {"$ref": "no"}},
    }  # fmt: skip
    found = operation(**fields)
    assert {key: found[key] for key in fields} == fields


def test_unknown_fields_become_extensions_and_losses() -> None:
    whole = convert_whole(
        swagger(paths={"/a": {"get": {"responses": {"200": {"description": ""}}, "callbacks": {}}}})
    )
    assert whole.document["paths"]["/a"]["get"]["x-callbacks"] == {}
    assert constructs(whole) == [("/paths/~1a/get/callbacks", "field callbacks")]


@BOTH
def test_operation_id_that_is_taken_is_left_out(profile: Profile) -> None:
    """The first by path and method keeps it, in any order of keys; one behind a reference counts too."""

    def node(name: str) -> Any:
        return {"operationId": name, "responses": {"200": {"description": ""}}}

    paths = {
        "/api/v1/c": {"$ref": "#/paths/~1api~1v1~1a"},
        "/api/v1/a": {"put": node("x"), "get": node("x")},
        "/api/v1/b": {"get": node("y"), "put": node("x")},
        "/apis/g/v1/a": {"get": node("x")},
    }
    lost = [
        ("/paths/~1api~1v1~1a/put/operationId", "operationId"),
        ("/paths/~1api~1v1~1b/put/operationId", "operationId"),
        ("/paths/~1api~1v1~1c/$ref", "operationId"),
    ]

    def ids(document: Any) -> dict[str, str]:
        return {
            f"{path} {method}": operation["operationId"]
            for path, item in document["paths"].items()
            for method, operation in item.items()
            if "operationId" in operation
        }

    kept = {"/api/v1/a get": "x", "/api/v1/b get": "y"}
    for given in (paths, dict(sorted(paths.items()))):
        whole = convert_whole(swagger(paths=given), profile=profile)
        assert ids(whole.document) == kept
        assert constructs(whole) == [("/paths/~1apis~1g~1v1~1a/get/operationId", "operationId"), *lost]
        split = convert(swagger(paths=given), profile=profile)
        core, group = (split.documents[GroupVersion(key)] for key in ("api/v1", "apis/g/v1"))
        assert (ids(core), ids(group)) == (kept, {"/apis/g/v1/a get": "x"})
        assert [(loss.pointer, loss.construct) for loss in split.losses] == lost


# Paths


@BOTH
def test_expression_in_a_path_is_left_out_of_its_template(profile: Profile) -> None:
    """As go-restful writes them: KubeVirt's extension server published such paths up to 1.0."""
    path = "/apis/g/v1/a/{name:[a-z]{1,3}/?}/{port:[0-9]+}/{parent=b/*}"
    names = ("name", "port")
    item = {
        "parameters": [
            {"name": name, "in": "path", "required": True, "type": "string", "x-is": name} for name in names
        ],
        "get": {"responses": {"200": {"description": ""}}},
    }
    split = convert(swagger(paths={path: item}), profile=profile)
    found = split.documents[GroupVersion("apis/g/v1")]["paths"]["/apis/g/v1/a/{name}/{port}/{parent}"]
    assert [each["x-is"] for each in found["parameters"]] == ["name", "port"]
    assert [each["name"] for each in found["get"]["parameters"]] == ["parent"]
    pointer = "/paths/" + path.replace("~", "~0").replace("/", "~1")
    assert [(loss.pointer, loss.construct) for loss in split.losses] == [
        (pointer, "path template"),
        (pointer, "path template"),
        (pointer, "path template"),
        (f"{pointer}/get", "path parameter"),
    ]
    assert "[a-z]{1,3}/?" in split.losses[0].reason


def test_name_that_is_declared_stays_whatever_is_in_it() -> None:
    parameter = {"name": "a:b", "in": "path", "required": True, "type": "string"}
    node = {"get": {"parameters": [{"$ref": "#/parameters/P"}], "responses": {"200": {"description": ""}}}}
    whole = convert_whole(swagger(paths={"/{a:b}": node}, parameters={"P": parameter}))
    assert [*whole.document["paths"]] == ["/{a:b}"]
    assert whole.losses == ()


def test_of_paths_that_differ_in_their_expressions_the_plain_one_stays() -> None:
    node = {"get": {"responses": {"200": {"description": ""}}, "operationId": "o"}}
    given = {"/a/{b:[0-9]+}": node, "/a/{b:[a-z]+}": node}
    for plain, rivals in (({}, ["/a/{b:[a-z]+}"]), ({"/a/{b}": node}, [*given])):
        for paths in ({**given, **plain}, {**plain, **dict(reversed(given.items()))}):
            whole = convert_whole(swagger(paths=paths))
            assert [*whole.document["paths"]] == ["/a/{b}"]
            lost = [loss.pointer for loss in whole.losses if loss.construct == "path"]
            assert lost == [f"/paths/~1a~1{key.removeprefix('/a/')}" for key in rivals]


# Null


@BOTH
def test_null_stands_for_nothing_and_is_reported(profile: Profile) -> None:
    """YAML has it wherever a key has no value."""
    item = {
        "get": None,
        "put": {"parameters": [None], "responses": {"200": None, "201": {"headers": {"H": None}}}},
    }
    whole = convert_whole(
        swagger(
            paths={"/a": None, "/b": item},
            definitions={"S": {"type": None, "properties": {"p": None}, "allOf": [None]}, "N": None},
            parameters={"P": None},
            responses={"R": None},
            securityDefinitions={"K": None},
        ),
        profile=profile,
    )
    answers = {
        "200": {"description": ""},
        "201": {"description": "", "headers": {"H": {"schema": {}}}},
    }
    assert whole.document["paths"] == {"/a": {}, "/b": {"put": {"responses": answers}}}
    assert whole.document["components"] == {
        "schemas": {"S": {"properties": {"p": {}}, "allOf": [{}]}, "N": {}}
    }
    places = {
        "/definitions/N",
        "/definitions/S/allOf/0",
        "/definitions/S/properties/p",
        "/definitions/S/type",
        "/parameters/P",
        "/paths/~1a",
        "/paths/~1b/get",
        "/paths/~1b/put/parameters/0",
        "/paths/~1b/put/responses/200",
        "/paths/~1b/put/responses/201",
        "/paths/~1b/put/responses/201/headers/H",
        "/responses/R",
        "/securityDefinitions/K",
    }
    assert {loss.pointer for loss in whole.losses} == places


# Media types

BODY = [{"name": "b", "in": "body", "schema": {"type": "string"}}]


@BOTH
@pytest.mark.parametrize(
    ("document_list", "operation_list", "types"),
    [
        (["a/a"], None, ["a/a"]),
        (["a/a"], ["b/b", "c/c"], ["b/b", "c/c"]),
        (["a/a"], [], ["*/*"]),
        (None, None, ["*/*"]),
        (None, ["*/*"], ["*/*"]),
    ],
)
def test_operation_list_replaces_the_document_list(
    profile: Profile, document_list: Any, operation_list: Any, types: list[str]
) -> None:
    shared = {} if document_list is None else {"consumes": document_list, "produces": document_list}
    fields = {} if operation_list is None else {"consumes": operation_list, "produces": operation_list}
    responses = {"200": {"description": "", "schema": {"type": "string"}}}
    found = operation(BODY, profile=profile, shared=shared, responses=responses, **fields)
    assert list(found["requestBody"]["content"]) == types
    assert list(found["responses"]["200"]["content"]) == types


# Bodies


@BOTH
@pytest.mark.parametrize("name", ["body", "other"])
def test_body_parameter_of_any_name_is_a_request_body(profile: Profile, name: str) -> None:
    node = {"name": name, "in": "body", "description": "d", "required": True, "schema": PET, "x-b": 1}
    found = operation([node], profile=profile, shared={"definitions": {"S": {}}}, consumes=["a/a"])
    assert found["requestBody"] == {
        "description": "d",
        "required": True,
        "x-b": 1,
        "content": {"a/a": {"schema": PET3}},
    }
    assert "parameters" not in found


@BOTH
def test_name_of_a_body_is_a_loss_where_it_says_something(profile: Profile) -> None:
    def lost(name: str) -> list[tuple[str, str]]:
        body = {"name": name, "in": "body", "schema": {}}
        item = {"put": {"parameters": [body], "responses": {"200": {"description": ""}}}}
        return constructs(convert_whole(swagger(paths={"/a": item}), profile=profile))

    assert lost("body") == []
    assert lost("pod") == [("/paths/~1a/put/parameters/0/name", "name of a body")]


@BOTH
def test_what_stands_beside_the_reference_of_a_parameter_or_response_is_a_loss(profile: Profile) -> None:
    shared: dict[str, Any] = {
        "parameters": {"Q": {"name": "q", "in": "query", "type": "string"}},
        "responses": {"R": {"description": "d"}},
    }
    get = {
        "parameters": [{"$ref": "#/parameters/Q", "description": "d"}],
        "responses": {"200": {"$ref": "#/responses/R", "x-a": 1}},
    }
    put = {"parameters": [{"$ref": "#/parameters/Q"}], "responses": {"200": {"$ref": "#/responses/R"}}}
    whole = convert_whole(swagger(paths={"/a": {"put": put, "get": get}}, **shared), profile=profile)
    operations = whole.document["paths"]["/a"]
    assert operations["get"] == operations["put"]
    assert constructs(whole) == [
        ("/paths/~1a/get/parameters/0/description", "field description"),
        ("/paths/~1a/get/responses/200/x-a", "field x-a"),
    ]


def test_shared_object_that_nothing_refers_to_is_a_loss_where_none_are_kept() -> None:
    shared: dict[str, Any] = {
        "parameters": {
            "a/b": {"name": "q", "in": "query", "type": "string"},
            "Q": {"$ref": "#/parameters/a~1b"},
        },
        "responses": {"R": {"description": "d"}},
    }
    get = {"parameters": [{"$ref": "#/parameters/Q"}], "responses": {"200": {"description": ""}}}
    document = swagger(paths={"/a": {"get": get}}, **shared)
    assert constructs(convert_whole(document, profile="oas")) == [("/parameters/a~1b", "component name")]
    assert constructs(convert_whole(document, profile="kubernetes")) == [("/responses/R", "shared object")]


SHARED_BODY = {
    "parameters": {"B": {"name": "b", "in": "body", "schema": {"type": "string"}}},
    "consumes": ["a/a"],
}


def test_shared_body_is_a_component_where_the_media_types_are_the_documents() -> None:
    ref = [{"$ref": "#/parameters/B"}]
    assert operation(ref, shared=SHARED_BODY)["requestBody"] == {"$ref": "#/components/requestBodies/B"}
    own = operation(ref, shared=SHARED_BODY, consumes=["b/b"])["requestBody"]
    assert own == {"content": {"b/b": {"schema": {"type": "string"}}}}


def test_shared_body_is_written_out_for_kubernetes() -> None:
    found = operation([{"$ref": "#/parameters/B"}], shared=SHARED_BODY, profile="kubernetes")
    assert found["requestBody"] == {"content": {"a/a": {"schema": {"type": "string"}}}}


def test_path_level_body_is_pushed_into_operations_without_one() -> None:
    own = [{"name": "o", "in": "body", "schema": {"type": "integer"}}]
    ok = {"200": {"description": ""}}
    item = {"parameters": BODY, "put": {"responses": ok}, "post": {"responses": ok, "parameters": own}}
    found = convert_whole(swagger(paths={"/a": item})).document["paths"]["/a"]
    assert found["put"]["requestBody"]["content"]["*/*"]["schema"] == {"type": "string"}
    assert found["post"]["requestBody"]["content"]["*/*"]["schema"] == {"type": "integer"}
    assert "parameters" not in found


def form(*fields: dict[str, Any], **others: Any) -> dict[str, Any]:
    result: dict[str, Any] = operation(
        [{"in": "formData", "type": "string", **each} for each in fields], **others
    )
    body: dict[str, Any] = result["requestBody"]
    return body


@BOTH
def test_path_level_body_that_no_operation_takes_is_a_loss(profile: Profile) -> None:
    body = {"name": "body", "in": "body", "schema": {}}
    field = {"name": "f", "in": "formData", "type": "string"}
    responses = {"200": {"description": ""}}

    def lost(shared: Any, own: Any) -> list[tuple[str, str]]:
        item = {"parameters": [shared]} | {
            method: {"parameters": each, "responses": responses} for method, each in own.items()
        }
        return constructs(convert_whole(swagger(paths={"/a": item}), profile=profile))

    assert lost(body, {"put": [], "post": [body]}) == []
    assert lost(body, {"put": [body], "post": [field]}) == [("/paths/~1a/parameters/0", "body parameter")]
    assert lost(body, {}) == [("/paths/~1a/parameters/0", "body parameter")]
    assert lost(field, {"put": [], "post": [field]}) == []
    assert lost(field, {"put": [field]}) == [("/paths/~1a/parameters/0", "form field")]
    assert lost(field, {"put": [body]}) == [("/paths/~1a/parameters/0", "form field")]


def test_form_fields_are_properties_of_a_urlencoded_body() -> None:
    body = form(
        {"name": "a", "required": True, "description": "d", "x-f": 1}, {"name": "b", "type": "integer"}
    )
    assert body == {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "string", "description": "d", "x-f": 1},
                        "b": {"type": "integer"},
                    },
                    "required": ["a"],
                }
            }
        },
    }


@pytest.mark.parametrize(
    ("kind", "consumes", "types"),
    [
        ("file", None, ["multipart/form-data"]),
        ("file", ["application/x-www-form-urlencoded"], ["multipart/form-data"]),
        ("string", ["multipart/form-data"], ["multipart/form-data"]),
        ("string", ["application/json"], ["application/x-www-form-urlencoded"]),
        ("string", None, ["application/x-www-form-urlencoded"]),
    ],
)
def test_form_media_type(kind: str, consumes: Any, types: list[str]) -> None:
    fields = {} if consumes is None else {"consumes": consumes}
    assert list(form({"name": "a", "type": kind}, **fields)["content"]) == types


def test_media_type_that_a_form_is_not_sent_in_is_a_loss() -> None:
    field = {"name": "a", "in": "formData", "type": "file", "hint": 1}
    types = ["application/json", "multipart/form-data", "application/x-www-form-urlencoded"]
    item = {"put": {"consumes": types, "parameters": [field], "responses": {"200": {"description": ""}}}}
    whole = convert_whole(swagger(paths={"/a": item}))
    media = whole.document["paths"]["/a"]["put"]["requestBody"]["content"]
    assert media == {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {"a": {"type": "string", "format": "binary", "x-hint": 1}},
            }
        }
    }
    assert [loss.pointer.removeprefix("/paths/~1a/put/parameters/0") for loss in whole.losses] == [
        "",
        "",
        "/hint",
    ]
    assert {loss.reason.partition(":")[0] for loss in whole.losses[:2]} == {types[0], types[2]}


def test_files_in_an_array_are_sent_as_multipart() -> None:
    """Not Swagger 2.0, but what is written for several files."""
    node = {"name": "f", "in": "formData", "type": "array", "items": {"type": "file"}}
    content = operation([node])["requestBody"]["content"]
    assert [*content] == ["multipart/form-data"]
    items = content["multipart/form-data"]["schema"]["properties"]["f"]["items"]
    assert items == {"type": "string", "format": "binary"}


def test_file_field_is_binary() -> None:
    content = form({"name": "a", "type": "file"})["content"]["multipart/form-data"]
    assert content["schema"]["properties"]["a"] == {"type": "string", "format": "binary"}


@pytest.mark.parametrize(
    ("separator", "encoding"),
    [
        (None, {"style": "form", "explode": False}),
        ("csv", {"style": "form", "explode": False}),
        ("multi", {"style": "form", "explode": True}),
        ("ssv", {"style": "spaceDelimited", "explode": False}),
        ("pipes", {"style": "pipeDelimited", "explode": False}),
    ],
)
def test_form_array_has_an_encoding(separator: str | None, encoding: Any) -> None:
    field = {"name": "a", "type": "array", "items": {"type": "string"}}
    if separator is not None:
        field["collectionFormat"] = separator
    content = form(field)["content"]["application/x-www-form-urlencoded"]
    assert content["encoding"] == {"a": encoding}


def test_shared_form_field_is_written_into_each_body() -> None:
    shared = {"parameters": {"F": {"name": "f", "in": "formData", "type": "string"}}}
    body = operation([{"$ref": "#/parameters/F"}], shared=shared)["requestBody"]
    assert body["content"]["application/x-www-form-urlencoded"]["schema"]["properties"] == {
        "f": {"type": "string"}
    }


def test_form_fields_of_the_path_are_joined() -> None:
    def field(name: str, kind: str = "string") -> dict[str, Any]:
        return {"name": name, "in": "formData", "type": kind}

    ok = {"200": {"description": ""}}
    item = {
        "parameters": [field("a"), field("b")],
        "put": {"responses": ok, "parameters": [field("b", "integer")]},
        "post": {"responses": ok, "parameters": [*BODY, *BODY, field("c")]},
    }
    whole = convert_whole(swagger(paths={"/a": item}))
    content = whole.document["paths"]["/a"]["put"]["requestBody"]["content"][
        "application/x-www-form-urlencoded"
    ]
    assert content["schema"]["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}
    assert whole.document["paths"]["/a"]["post"]["requestBody"] == {
        "content": {"*/*": {"schema": {"type": "string"}}}
    }
    assert constructs(whole) == [
        ("/paths/~1a/parameters/0", "form field"),
        ("/paths/~1a/parameters/1", "form field"),
        ("/paths/~1a/post/parameters/0/name", "name of a body"),
        ("/paths/~1a/post/parameters/1", "body parameter"),
        ("/paths/~1a/post/parameters/2", "form field"),
    ]


@BOTH
def test_reference_to_a_shared_object_of_another_kind_is_written_out(profile: Profile) -> None:
    shared = {
        "parameters": {"X": {"name": "p", "in": "query", "type": "string"}},
        "responses": {"X": {"description": "d"}},
    }
    found = operation(
        [{"$ref": "#/parameters/X"}],
        profile=profile,
        shared=shared,
        responses={"200": {"$ref": "#/parameters/X"}},
    )
    assert found["responses"]["200"] == {
        "description": "",
        "x-name": "p",
        "x-in": "query",
        "x-type": "string",
    }


# Parameters


@BOTH
@pytest.mark.parametrize(
    ("location", "separator", "style"),
    [
        ("query", None, {"style": "form", "explode": False}),
        ("query", "csv", {"style": "form", "explode": False}),
        ("query", "ssv", {"style": "spaceDelimited", "explode": False}),
        ("query", "pipes", {"style": "pipeDelimited", "explode": False}),
        ("query", "multi", {"style": "form", "explode": True}),
        ("header", None, {"style": "simple"}),
        ("header", "csv", {"style": "simple"}),
    ],
)
def test_collection_format(profile: Profile, location: str, separator: str | None, style: Any) -> None:
    fields: dict[str, Any] = {
        "in": location,
        "type": "array",
        "items": {"type": "integer", "format": "int32"},
    }
    if separator is not None:
        fields["collectionFormat"] = separator
    assert parameter(profile, **fields) == {
        "name": "p",
        "in": location,
        "schema": {"type": "array", "items": {"type": "integer", "format": "int32"}},
        **style,
    }


@pytest.mark.parametrize(
    ("location", "separator"), [("query", "tsv"), ("header", "ssv"), ("header", "multi")]
)
def test_separator_without_equivalent_is_kept_as_an_extension(location: str, separator: str) -> None:
    node = {
        "name": "p",
        "in": location,
        "type": "array",
        "items": {"type": "string"},
        "collectionFormat": separator,
    }
    ok = {"200": {"description": ""}}
    whole = convert_whole(swagger(paths={"/a": {"get": {"parameters": [node], "responses": ok}}}))
    found = whole.document["paths"]["/a"]["get"]["parameters"][0]
    assert found["x-collectionFormat"] == separator
    assert constructs(whole) == [("/paths/~1a/get/parameters/0/collectionFormat", "collectionFormat")]


def test_nested_collection_format_is_kept_as_an_extension() -> None:
    items = {"type": "array", "collectionFormat": "pipes", "items": {"type": "string"}}
    found = parameter(type="array", items=items, collectionFormat="multi")
    assert found["schema"]["items"] == {
        "type": "array",
        "items": {"type": "string"},
        "x-collectionFormat": "pipes",
    }


@BOTH
def test_parameter_keywords_move_into_the_schema(profile: Profile) -> None:
    inner = {
        "type": "integer", "format": "int32", "default": 4, "enum": [2, 4], "maximum": 9,
        "exclusiveMaximum": True, "minimum": 1, "multipleOf": 2, "uniqueItems": True,
    }  # fmt: skip
    outer = {"description": "d", "required": True, "allowEmptyValue": True, "x-p": {"items": 1}}
    assert parameter(profile, **inner, **outer) == {"name": "p", "in": "query", "schema": inner, **outer}


def test_shared_parameter_is_a_component_in_oas_and_written_out_for_kubernetes() -> None:
    shared = {"parameters": {"a/b": {"name": "p", "in": "query", "type": "string"}}}
    written = {"name": "p", "in": "query", "schema": {"type": "string"}}
    refs = [{"$ref": "#/parameters/a~1b"}]
    assert operation(refs, shared=shared)["parameters"] == [{"$ref": "#/components/parameters/a_b"}]
    assert operation(refs, shared=shared, profile="kubernetes")["parameters"] == [written]
    assert convert_whole(swagger(**shared)).document["components"]["parameters"] == {"a_b": written}
    assert "components" not in convert_whole(swagger(**shared), profile="kubernetes").document


def test_path_parameter_that_is_not_declared_is_added_and_one_not_in_the_path_left_out() -> None:
    nodes = [{"name": "x", "in": "path", "required": True, "type": "string"}]
    item = {"get": {"parameters": nodes, "responses": {"200": {"description": ""}}}}
    whole = convert_whole(swagger(paths={"/a/{b}": item}))
    added = {"name": "b", "in": "path", "required": True, "schema": {"type": "string"}}
    assert whole.document["paths"]["/a/{b}"]["get"]["parameters"] == [added]
    assert constructs(whole) == [
        ("/paths/~1a~1{b}/get", "path parameter"),
        ("/paths/~1a~1{b}/get/parameters/0", "path parameter"),
    ]


# Responses

RESPONSE = {"description": "d", "schema": PET, "x-r": 1}


def test_shared_response_is_a_component_where_the_media_types_are_the_documents() -> None:
    shared = {"responses": {"R": RESPONSE}, "definitions": {"S": {}}, "produces": ["a/a"]}
    ref = {"200": {"$ref": "#/responses/R"}}
    assert operation(shared=shared, responses=ref)["responses"] == {
        "200": {"$ref": "#/components/responses/R"}
    }
    own = operation(shared=shared, responses=ref, produces=["b/b"])["responses"]["200"]
    assert own == {"description": "d", "content": {"b/b": {"schema": PET3}}, "x-r": 1}
    components = convert_whole(swagger(**shared)).document["components"]["responses"]
    assert components == {"R": {"description": "d", "content": {"a/a": {"schema": PET3}}, "x-r": 1}}


def test_response_headers_have_schemas() -> None:
    headers = {
        "A": {"type": "integer", "description": "d", "x-h": 1},
        "B": {"type": "array", "items": {"type": "string"}},
    }
    found = operation(responses={"200": {"description": "", "headers": headers}})["responses"]["200"][
        "headers"
    ]
    assert found == {
        "A": {"schema": {"type": "integer"}, "description": "d", "x-h": 1},
        "B": {"schema": {"type": "array", "items": {"type": "string"}}, "style": "simple"},
    }


def test_response_examples_stand_under_their_media_type() -> None:
    node = {"description": "", "schema": {"type": "string"}, "examples": {"a/a": {"$ref": "#/x"}, "b/b": 1}}
    content = operation(produces=["a/a"], responses={"200": node})["responses"]["200"]["content"]
    assert content == {
        "a/a": {"schema": {"type": "string"}, "example": {"$ref": "#/x"}},
        "b/b": {"schema": {"type": "string"}, "example": 1},
    }


@BOTH
def test_file_response_is_binary(profile: Profile) -> None:
    found = operation(profile=profile, responses={"200": {"description": "", "schema": {"type": "file"}}})
    assert found["responses"]["200"]["content"] == {"*/*": {"schema": {"type": "string", "format": "binary"}}}


def test_operation_without_responses_gets_a_default_one() -> None:
    whole = convert_whole(swagger(paths={"/a": {"get": {"responses": {"x-r": 1, "2xx": {}}}}}))
    found = whole.document["paths"]["/a"]["get"]["responses"]
    assert found == {"x-r": 1, "x-2xx": {}, "default": {"description": ""}}
    assert constructs(whole) == [
        ("/paths/~1a/get/responses", "operation without responses"),
        ("/paths/~1a/get/responses/2xx", "field 2xx"),
    ]


def test_range_of_statuses_is_one_in_v3_too() -> None:
    shared = {"definitions": {"S": {"type": "string"}}}
    found = operation(responses={"4XX": {"description": "d", "schema": PET}}, shared=shared)
    assert found["responses"] == {"4XX": {"description": "d", "content": {"*/*": {"schema": PET3}}}}


def test_operation_that_says_nothing_of_responses_is_the_place_of_the_loss() -> None:
    whole = convert_whole(swagger(paths={"/a": {"get": {}, "put": {"responses": {}}}}))
    answers = {"responses": {"default": {"description": ""}}}
    assert whole.document["paths"]["/a"] == {"get": answers, "put": answers}
    assert [loss.pointer for loss in whole.losses] == ["/paths/~1a/get", "/paths/~1a/put/responses"]


# Schemas


@BOTH
@pytest.mark.parametrize(
    ("node", "expected", "lost"),
    [
        ({"allOf": []}, {}, []),
        ({"anyOf": []}, {}, ["anyOf"]),
        ({"oneOf": []}, {}, ["oneOf"]),
        ({"multipleOf": 0}, {}, ["multipleOf"]),
        ({"multipleOf": -1.5}, {}, ["multipleOf"]),
        ({"maxLength": -1}, {}, ["maxLength"]),
        ({"minItems": 0}, {"minItems": 0}, []),
        ({"maxItems": 3.0}, {"maxItems": 3}, []),
        ({"exclusiveMaximum": True}, {}, ["exclusiveMaximum"]),
        ({"exclusiveMinimum": False, "maximum": 1}, {"maximum": 1}, ["exclusiveMinimum"]),
    ],
)
def test_keyword_that_json_schema_does_not_allow_is_left_out(
    profile: Profile, node: Any, expected: Any, lost: list[str]
) -> None:
    whole = whole_schema(node, profile=profile)
    assert repr(whole.document["components"]["schemas"]["S"]) == repr(expected)
    assert [loss.pointer for loss in whole.losses] == [f"/definitions/S/{key}" for key in lost]
    found = parameter(profile, **{"type": "integer", **node})["schema"]
    assert found == {"type": "integer", **expected}


@BOTH
def test_reference_that_leads_back_to_itself_is_kept_as_an_extension(profile: Profile) -> None:
    others = {
        "A": {"$ref": "#/definitions/B"},
        "B": {"$ref": "#/definitions/A"},
        "C": {"$ref": "#/definitions/A"},
        "D": {"properties": {"p": {"$ref": "#/definitions/E/properties/p"}}},
        "E": {"properties": {"p": {"$ref": "#/definitions/D/properties/p"}}},
    }
    whole = whole_schema({"$ref": "#/definitions/S"}, profile=profile, **others)
    schemas = whole.document["components"]["schemas"]
    assert {name: node for name, node in schemas.items() if name not in "DE"} == {
        "S": {"x-unresolved-ref": "#/definitions/S"},
        "A": {"x-unresolved-ref": "#/definitions/B"},
        "B": {"x-unresolved-ref": "#/definitions/A"},
        "C": {"$ref": "#/components/schemas/A"},
        "D.properties.p": {"x-unresolved-ref": "#/definitions/E/properties/p"},
        "E.properties.p": {"x-unresolved-ref": "#/definitions/D/properties/p"},
    }
    assert {construct for _, construct in constructs(whole)} == {"circular $ref"}
    assert len(whole.losses) == 5


@BOTH
@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"discriminator": "kind"}, {"discriminator": {"propertyName": "kind"}}),
        ({"type": "string", "x-nullable": True}, {"type": "string", "x-nullable": True, "nullable": True}),
        ({"type": "string", "x-nullable": False}, {"type": "string", "x-nullable": False}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"type": ["null"]}, {"nullable": True, "enum": [None]}),
        ({"required": []}, {}),
        ({"properties": None, "items": None, "type": "array"}, {"type": "array", "items": {}}),
        ({"additionalProperties": True}, {"additionalProperties": True}),
        ({"additionalProperties": PET}, {"additionalProperties": PET3}),
        ({"allOf": [PET, {"properties": {"a": PET}}]}, {"allOf": [PET3, {"properties": {"a": PET3}}]}),
        ({"anyOf": [PET], "oneOf": [PET], "not": PET}, {"anyOf": [PET3], "oneOf": [PET3], "not": PET3}),
        ({**PET, "description": "d"}, {"description": "d", "allOf": [PET3]}),
        ({**PET, "x-a": 1, "allOf": [{"title": "t"}]}, {"x-a": 1, "allOf": [PET3, {"title": "t"}]}),
        ({"items": {**PET, "default": {}}}, {"items": {"default": {}, "allOf": [PET3]}}),
        ({"exclusiveMinimum": True, "minimum": 1}, {"exclusiveMinimum": True, "minimum": 1}),
        ({"readOnly": True, "example": {"$ref": "no"}}, {"readOnly": True, "example": {"$ref": "no"}}),
        ({"xml": {"name": "n", "x-x": 1}}, {"xml": {"name": "n", "x-x": 1}}),
        ({"externalDocs": {"url": "u", "x-x": 1}}, {"externalDocs": {"url": "u", "x-x": 1}}),
        (
            {"x-kubernetes-unions": [{"discriminator": "k"}]},
            {"x-kubernetes-unions": [{"discriminator": "k"}]},
        ),
        ({"enum": [{"$ref": "#/definitions/S"}]}, {"enum": [{"$ref": "#/definitions/S"}]}),
        ({"default": {"$ref": "#/definitions/S"}}, {"default": {"$ref": "#/definitions/S"}}),
    ],
)
def test_schema(profile: Profile, node: Any, expected: Any) -> None:
    assert schema(node, profile=profile) == expected


@BOTH
def test_properties_may_be_called_anything(profile: Profile) -> None:
    """JSONSchemaProps, VolumeNodeAffinity.required, LimitRangeItem.default."""
    names = (
        "$ref",
        "default",
        "required",
        "enum",
        "items",
        "properties",
        "discriminator",
        "x-a",
        "type",
        "allOf",
    )
    found = schema({"properties": dict.fromkeys(names, PET), "required": ["$ref"]}, profile=profile)
    assert found == {"properties": dict.fromkeys(names, PET3), "required": ["$ref"]}


@BOTH
def test_tuple_items_are_any_of_them(profile: Profile) -> None:
    whole = whole_schema({"type": "array", "items": [PET, {"type": "string"}]}, profile=profile)
    items = whole.document["components"]["schemas"]["S"]["items"]
    assert items == {"anyOf": [PET3, {"type": "string"}], "x-items": [PET3, {"type": "string"}]}
    assert constructs(whole) == [("/definitions/S/items", "tuple items")]


def test_unknown_keyword_is_kept_as_an_extension() -> None:
    whole = whole_schema({"patternProperties": {"^a": PET}, "type": "object"})
    assert whole.document["components"]["schemas"]["S"] == {
        "type": "object",
        "x-patternProperties": {"^a": PET},
    }
    assert constructs(whole) == [("/definitions/S/patternProperties", "field patternProperties")]


def test_unknown_type_is_kept_as_an_extension() -> None:
    whole = whole_schema({"type": "any"})
    assert whole.document["components"]["schemas"]["S"] == {"x-type": "any"}
    assert constructs(whole) == [("/definitions/S/type", "type")]


@BOTH
def test_external_reference_is_kept_and_reported(profile: Profile) -> None:
    whole = whole_schema({"properties": {"a": {"$ref": "ext.json#/definitions/Z"}}}, profile=profile)
    properties = whole.document["components"]["schemas"]["S"]["properties"]
    assert properties == {"a": {"$ref": "ext.json#/definitions/Z"}}
    assert constructs(whole) == [("/definitions/S/properties/a/$ref", "external $ref")]


@BOTH
def test_dangling_reference_is_kept_as_an_extension(profile: Profile) -> None:
    whole = whole_schema({"properties": {"a": {"$ref": "#/definitions/Z", "title": "t"}}}, profile=profile)
    a = whole.document["components"]["schemas"]["S"]["properties"]["a"]
    assert a == {"title": "t", "allOf": [{"x-unresolved-ref": "#/definitions/Z"}]}
    assert constructs(whole) == [("/definitions/S/properties/a/$ref", "dangling $ref")]


@pytest.mark.parametrize("ref", ["#/definitions/a~1b", "#/definitions/a%7E1b"])
def test_keys_stay_raw_and_references_escaped_for_kubernetes(ref: str) -> None:
    whole = whole_schema({"items": {"$ref": ref}}, profile="kubernetes", **{"a/b": {"type": "string"}})
    schemas = whole.document["components"]["schemas"]
    assert schemas["a/b"] == {"type": "string"}
    assert schemas["S"]["items"] == {"$ref": ref.replace("definitions", "components/schemas")}


@BOTH
def test_reference_into_the_document_becomes_a_component(profile: Profile) -> None:
    node = {"properties": {"a": {"type": "string"}, "b": {"$ref": "#/definitions/S/properties/a"}}}
    schemas = whole_schema(node, profile=profile).document["components"]["schemas"]
    assert schemas["S"]["properties"]["b"] == {"$ref": "#/components/schemas/S.properties.a"}
    assert schemas["S.properties.a"] == {"type": "string"}


@BOTH
@pytest.mark.parametrize(
    ("node", "is_kept"),
    [
        ({"type": "string", "default": "a"}, True),
        ({"type": "string", "default": {}}, False),
        ({"type": "number", "default": "0.2"}, False),
        ({"type": "integer", "default": True}, False),
        ({"type": "integer", "default": None}, False),
        ({"type": "integer", "default": None, "x-nullable": True}, True),
        ({"enum": ["a"], "default": "b"}, False),
        ({"type": "array", "items": {"type": "string"}, "default": ["a"]}, True),
        ({"type": "array", "items": {"type": "string"}, "default": [1]}, False),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True, "default": 1}, False),
        ({"type": "string", "maxLength": 1, "default": "ab"}, False),
        ({"type": "integer", "multipleOf": 2, "default": 4}, True),
        ({"type": "integer", "multipleOf": 2, "default": 5}, False),
        ({"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "default": [1, "a"]}, True),
        ({"type": "array", "items": [{"type": "string"}], "default": ["a", 1]}, False),
        ({"type": "integer", "format": "int32", "default": 2**31 - 1}, True),
        ({"type": "integer", "format": "int32", "default": 2**31}, False),
        ({"type": "integer", "format": "int64", "default": 2**63}, False),
        ({"type": "string", "format": "int64", "default": "0"}, True),
        ({"type": "string", "format": "date", "default": "2024-02-29"}, True),
        ({"type": "string", "format": "date", "default": "2023-02-29"}, False),
        ({"type": "string", "format": "date", "default": "2023-13-01"}, False),
        ({"type": "string", "format": "date", "default": "today"}, False),
        ({"type": "string", "format": "date-time", "default": "0001-01-01T00:00:00Z"}, True),
        ({"type": "string", "format": "date-time", "default": "2020-01-01T10:00:00.5+02:00"}, True),
        ({"type": "string", "format": "date-time", "default": "2020-01-01T25:00:00Z"}, False),
        ({"type": "string", "format": "date-time", "default": ""}, False),
        ({"type": "string", "format": "byte", "default": "YWJj"}, True),
        ({"type": "string", "format": "byte", "default": "ä"}, False),
        ({"type": "string", "format": "email", "default": ""}, False),
        ({"type": "string", "format": "ipv4", "default": "10.0.0.1"}, True),
        ({"type": "string", "format": "ipv4", "default": "10.0.0.256"}, False),
        ({"type": "string", "format": "ipv6", "default": "::1"}, True),
        ({"type": "string", "format": "ipv6", "default": "1"}, False),
        ({"type": "string", "format": "uuid", "default": "1"}, False),
        ({"type": "string", "format": "of-our-own", "default": "1"}, True),
        ({"$ref": "#/definitions/Strict", "default": {}}, False),
        ({"$ref": "#/definitions/Strict", "default": {"a": 1}}, True),
        ({"allOf": [{"$ref": "#/definitions/Strict"}], "default": {}}, False),
        ({"$ref": "#/definitions/S", "default": {}}, True),
    ],
)
def test_default_that_its_schema_refuses_is_left_out(profile: Profile, node: Any, is_kept: bool) -> None:
    strict = {"type": "object", "required": ["a"]}
    whole = whole_schema({"properties": {"p": node}}, profile=profile, Strict=strict)
    assert ("default" in whole.document["components"]["schemas"]["S"]["properties"]["p"]) is is_kept
    lost = [loss.pointer for loss in whole.losses if loss.construct != "tuple items"]
    assert lost == ([] if is_kept else ["/definitions/S/properties/p/default"])


# Security


FLOW = {"authorizationUrl": "a", "tokenUrl": "t", "scopes": {"s": "t"}}


@BOTH
@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": "basic"}, {"type": "http", "scheme": "basic"}),
        ({"type": "apiKey", "name": "n", "in": "header"}, {"type": "apiKey", "name": "n", "in": "header"}),
    ],
)
def test_security_scheme(profile: Profile, node: Any, expected: Any) -> None:
    about = {"description": "d", "x-s": 1}
    whole = convert_whole(swagger(securityDefinitions={"k": {**node, **about}}), profile=profile)
    assert whole.document["components"]["securitySchemes"] == {"k": {**expected, **about}}
    assert whole.losses == ()


@BOTH
@pytest.mark.parametrize(
    ("flow", "name", "urls"),
    [
        ("implicit", "implicit", ["authorizationUrl"]),
        ("password", "password", ["tokenUrl"]),
        ("application", "clientCredentials", ["tokenUrl"]),
        ("accessCode", "authorizationCode", ["authorizationUrl", "tokenUrl"]),
    ],
)
def test_oauth2_flow(profile: Profile, flow: str, name: str, urls: list[str]) -> None:
    fields = {key: FLOW[key] for key in ("scopes", *urls)}
    node = {"type": "oauth2", "flow": flow, **fields}
    whole = convert_whole(swagger(securityDefinitions={"k": node}), profile=profile)
    assert whole.document["components"]["securitySchemes"] == {
        "k": {"type": "oauth2", "flows": {name: fields}}
    }
    assert whole.losses == ()


def test_oauth2_flow_with_other_urls() -> None:
    node = {"type": "oauth2", "flow": "application", "authorizationUrl": "a", "scopes": {}}
    whole = convert_whole(swagger(securityDefinitions={"k": node}))
    flows = whole.document["components"]["securitySchemes"]["k"]["flows"]
    assert flows == {"clientCredentials": {"tokenUrl": "", "scopes": {}, "x-authorizationUrl": "a"}}
    assert constructs(whole) == [
        ("/securityDefinitions/k", "flow without tokenUrl"),
        ("/securityDefinitions/k/authorizationUrl", "field authorizationUrl"),
    ]


# Kubernetes


def test_int_or_string_and_quantity_are_recovered_for_kubernetes() -> None:
    definitions = {
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string", "description": "q"},
    }
    document = swagger(definitions=definitions)
    int_or_string, quantity = (
        convert_whole(document, profile="kubernetes").document["components"]["schemas"][name]
        for name in definitions
    )
    assert int_or_string == {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
    assert quantity == {"description": "q", "oneOf": [{"type": "string"}, {"type": "number"}]}
    assert convert_whole(document).document["components"]["schemas"] == definitions
