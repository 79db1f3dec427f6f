"""Each construct of Swagger 2.0 and what it becomes, in the profile that the row belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from converters.from_swagger2.swaggers import BOTH, constructs, operation, swagger
from specmux_converters.from_swagger2.conversion import convert, convert_whole
from specmux_converters.from_swagger2.reading.source import Profile
from specmux_converters.group_versions import GroupVersion


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
