"""What other converters and validators found in ours: the inputs of ``data/defects`` and their kind."""

from __future__ import annotations

import time
from typing import Any

import pytest

from shared_data import DATA, load, needs
from specmux_converters import ConverterError
from specmux_converters.from_swagger2.conversion import WholeConversion, convert_whole
from specmux_converters.from_swagger2.reading.source import Profile
from specmux_converters.losses import Grade

NOTE, LOSS = Grade.NOTE, Grade.LOSS
BOTH = pytest.mark.parametrize("profile", ["oas", "kubernetes"])


def defect(name: str, profile: Profile = "oas") -> WholeConversion:
    return convert_whole(load(DATA / "defects" / f"{name}.json"), profile=profile)


def reported(whole: WholeConversion) -> list[tuple[str, str, Grade]]:
    return [(loss.pointer, loss.construct, loss.grade) for loss in whole.losses]


def schema(node: Any, **others: Any) -> tuple[Any, list[tuple[str, str, Grade]]]:
    document = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}}
    whole = convert_whole({**document, "definitions": {"S": node, **others}})
    return whole.document["components"]["schemas"]["S"], reported(whole)


def operation(method: str = "post", profile: Profile = "oas", **fields: Any) -> tuple[Any, Any]:
    node = {"responses": {"200": {"description": "d"}}, **fields}
    document = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {"/a": {method: node}}}
    whole = convert_whole(document, profile=profile)
    return whole.document["paths"]["/a"][method], reported(whole)


@BOTH
def test_02_an_array_says_what_is_in_it(profile: Profile) -> None:
    whole = defect("02-array-without-items", profile)
    assert whole.document["components"]["schemas"]["A"] == {"type": "array", "items": {}}
    assert reported(whole) == [("/definitions/A", "array without items", NOTE)]


@pytest.mark.parametrize(
    "node",
    [
        {"in": "query", "name": "q", "type": "array"},
        {"in": "query", "name": "q", "type": "array", "items": {"type": "array"}},
        {"in": "formData", "name": "q", "type": "array"},
        {"in": "body", "name": "body", "schema": {"allOf": [{"type": ["array", "null"]}]}},
    ],
)
def test_an_array_says_what_is_in_it_wherever_it_stands(node: Any) -> None:
    found, report = operation(parameters=[node])
    assert '"items": {}' in str(found).replace("'", '"')
    assert [construct for _, construct, _ in report] == ["array without items"]


@BOTH
def test_03_what_v3_ignores_is_reported(profile: Profile) -> None:
    place = "/paths/~1a/get"
    assert reported(defect("03-ignored-in-v3", profile)) == [
        (place, "body", LOSS),
        (f"{place}/parameters/0/name", "header parameter", LOSS),
        (f"{place}/parameters/1/name", "header parameter", LOSS),
        (f"{place}/responses/200/headers/Content-Type", "response header", LOSS),
    ]


@pytest.mark.parametrize(
    ("method", "profile", "grade"),
    [
        ("get", "oas", LOSS),
        ("head", "kubernetes", LOSS),
        ("delete", "oas", NOTE),
        ("delete", "kubernetes", NOTE),
        ("options", "oas", None),
        ("post", "oas", None),
    ],
)
def test_a_body_that_v3_ignores(method: str, profile: Profile, grade: Grade | None) -> None:
    body = {"in": "body", "name": "body", "schema": {"type": "string"}}
    found, report = operation(method, profile, parameters=[body])
    assert found["requestBody"]["content"] == {"*/*": {"schema": {"type": "string"}}}
    assert report == ([] if grade is None else [(f"/paths/~1a/{method}", "body", grade)])


def test_04_a_list_in_multipart_is_reported() -> None:
    whole = defect("04-multipart-csv")
    assert reported(whole) == [("/paths/~1a/post/parameters/0", "collectionFormat", LOSS)]


@pytest.mark.parametrize(
    ("consumes", "separator", "is_lost"),
    [
        (["multipart/form-data"], "csv", True),
        (["multipart/form-data"], "pipes", True),
        (["multipart/form-data"], "multi", False),
        (["Multipart/Form-Data; boundary=x", "application/x-www-form-urlencoded"], "ssv", True),
        (["application/x-www-form-urlencoded"], "csv", False),
        ([], "csv", False),
    ],
)
def test_a_list_in_a_form(consumes: list[str], separator: str, is_lost: bool) -> None:
    field = {
        "in": "formData",
        "name": "f",
        "type": "array",
        "items": {"type": "string"},
        "collectionFormat": separator,
    }
    _, report = operation(consumes=consumes, parameters=[field])
    assert report == ([("/paths/~1a/post/parameters/0", "collectionFormat", LOSS)] if is_lost else [])


NULL = {"nullable": True, "enum": [None]}
REF3 = {"$ref": "#/components/schemas/T"}
REF2 = {"$ref": "#/definitions/T"}


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (
            {"type": ["string", "array", "null"]},
            {
                "nullable": True,
                "anyOf": [
                    {"type": "string", "nullable": True},
                    {"type": "array", "items": {}, "nullable": True},
                ],
            },
        ),
        ({**REF2, "x-nullable": True}, {"nullable": True, "anyOf": [REF3, NULL]}),
        (
            {**REF2, "x-nullable": True, "description": "d"},
            {"nullable": True, "anyOf": [REF3, NULL], "description": "d"},
        ),
        (
            {"allOf": [REF2, {"type": "object"}], "x-nullable": True},
            {"nullable": True, "anyOf": [{"allOf": [REF3, {"type": "object"}]}, NULL]},
        ),
        (
            {"anyOf": [REF2, {"type": "string"}], "x-nullable": True},
            {"nullable": True, "anyOf": [REF3, {"type": "string"}, NULL]},
        ),
        (
            {"oneOf": [REF2], "discriminator": "k", "x-nullable": True},
            {"nullable": True, "anyOf": [{"oneOf": [REF3], "discriminator": {"propertyName": "k"}}, NULL]},
        ),
        (
            {"type": "string", "enum": ["a"], "x-nullable": True},
            {"type": "string", "nullable": True, "enum": ["a", None]},
        ),
        ({"type": "string", "x-nullable": True}, {"type": "string", "nullable": True}),
    ],
)
def test_05_null_passes_by_the_letter_of_3_0_3(node: Any, expected: Any) -> None:
    found, report = schema(node, T={"type": "object"})
    found.pop("x-nullable", None)
    assert found == expected
    assert report == []


def test_05_input() -> None:
    schemas = defect("05-nullable").document["components"]["schemas"]
    assert all(each["nullable"] for each in schemas["several"]["anyOf"])
    assert schemas["reference"]["anyOf"][1] == NULL
    assert None in schemas["choice"]["enum"]


def test_06_defaults_against_pattern_and_unique_items_go() -> None:
    whole = defect("06-default-pattern-unique")
    assert all("default" not in each for each in whole.document["components"]["schemas"].values())
    assert reported(whole) == [
        ("/definitions/A/default", "default", LOSS),
        ("/definitions/B/default", "default", LOSS),
    ]


@pytest.mark.parametrize(
    ("node", "is_kept"),
    [
        ({"type": "string", "pattern": "^[a-z]+$", "default": "abc"}, True),
        ({"type": "string", "pattern": "^([a-z]+\\.)*[a-z]+$", "default": "a.b"}, True),
        ({"type": "string", "pattern": "^a|^c", "default": "b"}, False),
        ({"type": "string", "pattern": "(?", "default": "b"}, True),
        ({"type": "array", "uniqueItems": True, "default": [1, 1.0]}, False),
        ({"type": "array", "uniqueItems": True, "default": [1, True, {"a": 0}, {"a": False}]}, True),
    ],
)
def test_a_default_that_its_pattern_or_uniqueness_refuses(node: Any, is_kept: bool) -> None:
    found, _ = schema(node)
    assert ("default" in found) == is_kept


@pytest.mark.timeout(20)
def test_a_pattern_with_very_many_ways_is_decided() -> None:
    found, report = schema({"type": "string", "pattern": "^(a+)+$", "default": "a" * 10_000 + "b"})
    assert "default" not in found
    assert report == [("/definitions/S/default", "default", LOSS)]


def test_a_pattern_that_go_does_not_know_is_not_tried() -> None:
    found, report = schema({"type": "string", "pattern": "^(?=a)", "default": "b"})
    assert "default" in found
    assert report == [("/definitions/S", "default", NOTE)]


def test_07_choices_are_named_once() -> None:
    whole = defect("07-enum-twice")
    assert whole.document["components"]["schemas"]["A"]["enum"] == ["a"]
    assert reported(whole) == [("/definitions/A/enum/1", "repeated value", NOTE)]


def test_tags_are_named_once() -> None:
    tags = [{"name": "a"}, {"name": "b"}, {"name": "a"}, {"name": "b", "description": "other"}]
    post = {"tags": ["a", "b", "a"], "responses": {"200": {"description": "d"}}}
    document = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "tags": tags}
    whole = convert_whole({**document, "paths": {"/a": {"post": post}}})
    assert whole.document["tags"] == tags[:2]
    assert whole.document["paths"]["/a"]["post"]["tags"] == ["a", "b"]
    assert reported(whole) == [
        ("/paths/~1a/post/tags/2", "repeated value", NOTE),
        ("/tags/2", "repeated value", NOTE),
        ("/tags/3", "tag", LOSS),
    ]


@BOTH
def test_08_requirements_of_security_are_checked(profile: Profile) -> None:
    document = load(DATA / "defects" / "08-security-values.json")
    with pytest.raises(ConverterError) as refused:
        convert_whole(document, profile=profile)
    assert refused.value.pointer == "/security/0/k"
    document["security"] = document["security"][1:]
    with pytest.raises(ConverterError) as refused:
        convert_whole(document, profile=profile)
    assert refused.value.pointer == "/security/0"
    document["security"] = document["security"][1:]
    assert ("/security/0/unknown", "security", NOTE) in reported(convert_whole(document, profile=profile))


def test_scopes_that_are_null_are_none() -> None:
    found, report = operation(security=[{"k": None}])
    assert found["security"] == [{"k": []}]
    assert ("/paths/~1a/post/security/0/k", "null", NOTE) in report


def test_a_reference_is_no_status() -> None:
    found, report = operation(responses={"$ref": "#/x-responses", "200": {"description": "d"}})
    assert found["responses"] == {"x-$ref": "#/x-responses", "200": {"description": "d"}}
    assert report == [("/paths/~1a/post/responses/$ref", "field $ref", LOSS)]


def test_10_a_path_has_one_slash() -> None:
    assert defect("10-base-path").document["servers"] == [{"url": "https://h.example/v1"}]


def test_11_what_kubernetes_says_for_its_own_clients_is_a_note() -> None:
    assert reported(defect("11-operation-schemes", "kubernetes")) == [
        ("/paths/~1apis~1g.io~1v1~1a/get/schemes", "operation schemes", NOTE)
    ]


@pytest.mark.parametrize("count", [20_000])
def test_12_form_fields_of_a_path_take_linear_time(count: int) -> None:
    def fields(kind: str) -> list[dict[str, str]]:
        return [{"name": f"p{number}", "in": "formData", "type": kind} for number in range(count)]

    post = {"parameters": fields("integer"), "responses": {"200": {"description": "d"}}}
    item = {"parameters": fields("string"), "post": post}
    started = time.process_time()
    document = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {"/apis/g/v1/a": item}}
    whole = convert_whole(document, profile="kubernetes")
    assert time.process_time() - started < 10
    assert len(whole.losses) == count


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("required", True),
        ("required", ["a", 1]),
        ("enum", {}),
        ("properties", []),
        ("allOf", {}),
        ("items", "x"),
        ("additionalProperties", []),
        ("description", 5),
        ("pattern", ["^a$"]),
        ("maximum", "9"),
        ("maximum", True),
        ("exclusiveMinimum", 5),
        ("maxLength", 1.5),
        ("discriminator", {}),
        ("readOnly", "yes"),
        ("externalDocs", "https://d.example"),
        ("xml", {"attribute": "yes"}),
        ("$ref", {}),
        ("contact", {"team": "x"}),
        ("license", "MIT"),
    ],
)
def test_a_keyword_of_another_type_is_an_extension_and_a_loss(key: str, value: Any) -> None:
    found, report = schema({"type": "string", key: value})
    assert found == {"type": "string", f"x-{key}": value}
    assert [(pointer, grade) for pointer, _, grade in report] == [(f"/definitions/S/{key}", LOSS)]


def test_a_type_that_is_no_name_is_an_extension_and_a_loss() -> None:
    found, report = schema({"type": ["string", 5]})
    assert found == {"x-type": ["string", 5]}
    assert report == [("/definitions/S/type", "type", LOSS)]


def test_a_bound_excluded_beside_one_of_another_type_says_nothing() -> None:
    found, report = schema({"type": "number", "exclusiveMinimum": True, "minimum": "1"})
    assert found == {"type": "number", "x-minimum": "1"}
    assert {grade for _, _, grade in report} == {NOTE, LOSS}


@pytest.mark.parametrize(
    ("name", "losses"), [("required-true", 1), ("schema-contact-keyword", 1), ("schema-license-keyword", 2)]
)
def test_odd_keywords_of_schemas_are_losses(name: str, losses: int) -> None:
    whole = defect(f"fidelity/{name}")
    assert len([loss for loss in whole.losses if loss.grade is LOSS]) == losses


@needs("data/defects/fidelity/real-enum-support-spec.json")
@pytest.mark.parametrize("name", ["real-enum-support-spec", "real-required-attributes-spec"])
def test_real_documents_with_odd_keywords_convert(name: str) -> None:
    assert any(loss.construct == "keyword of another type" for loss in defect(f"fidelity/{name}").losses)


def test_variables_of_servers_are_declared() -> None:
    document = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}, "schemes": ["https"]}
    whole = convert_whole({**document, "host": "{sub}.example.com", "basePath": "/{v}"}, profile="oas")
    variables = {"sub": {"default": "sub"}, "v": {"default": "v"}}
    assert whole.document["servers"] == [{"url": "https://{sub}.example.com/{v}", "variables": variables}]
    assert [loss.construct for loss in whole.losses] == ["server variable"] * 2


def test_paths_that_differ_in_names_of_parameters_are_noted() -> None:
    item = {"get": {"responses": {"200": {"description": "d"}}}}
    paths = {"/a/{x}": item, "/a/{y}": item, "/a/{x}/b": item}
    whole = convert_whole({"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": paths})
    assert whole.document["paths"].keys() == paths.keys()
    assert ("/paths/~1a~1{y}", "path template", NOTE) in reported(whole)


def test_scopes_of_what_has_none_are_noted() -> None:
    document = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}}
    schemes = {
        "key": {"type": "apiKey", "name": "k", "in": "header"},
        "flow": {"type": "oauth2", "flow": "password", "tokenUrl": "https://t", "scopes": {"s": "d"}},
    }
    security = [{"key": ["s"]}, {"flow": ["s"]}, {"key": []}]
    whole = convert_whole({**document, "securityDefinitions": schemes, "security": security})
    assert whole.document["security"] == security
    assert reported(whole) == [("/security/0/key", "scopes", NOTE)]


@pytest.mark.parametrize("extension", ["x-ms-discriminator-value", "x-discriminator-value"])
def test_values_of_discriminators_become_a_mapping(extension: str) -> None:
    of_pet = {"allOf": [{"$ref": "#/definitions/S"}]}
    found, report = schema(
        {"type": "object", "discriminator": "kind", "required": ["kind"], "properties": {"kind": {}}},
        Cat={**of_pet, extension: "#Zoo.Cat"},
        Lion={"allOf": [{"$ref": "#/definitions/Cat"}], extension: "#Zoo.Lion"},
        Dog=of_pet,
    )
    mapping = {"#Zoo.Cat": "#/components/schemas/Cat", "#Zoo.Lion": "#/components/schemas/Lion"}
    assert found["discriminator"] == {"propertyName": "kind", "mapping": mapping}
    assert report == []


def test_a_parameter_that_is_nowhere_is_left_out() -> None:
    get = {"parameters": [{"$ref": "#/parameters/none"}], "responses": {"200": {"description": "d"}}}
    whole = convert_whole(
        {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {"/a": {"get": get}}}
    )
    assert "parameters" not in whole.document["paths"]["/a"]["get"]
    assert [loss.reason for loss in whole.losses] == ["nothing is there; left out"]


def test_scopes_that_a_flow_lacks_are_added() -> None:
    whole = convert_whole(
        {
            "swagger": "2.0",
            "info": {"title": "t", "version": "1"},
            "paths": {},
            "securityDefinitions": {"o": {"type": "oauth2", "flow": "password", "tokenUrl": "https://t"}},
        }
    )
    flows = whole.document["components"]["securitySchemes"]["o"]["flows"]
    assert flows == {"password": {"scopes": {}, "tokenUrl": "https://t"}}
    assert reported(whole) == [("/securityDefinitions/o", "flow without scopes", NOTE)]
