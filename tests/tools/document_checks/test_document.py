"""What is found in one document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from shared_data import DATA, documents, files, read
from specmux_converters.codecs import encode
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import CBOR
from specmux_tools.document_checks.document import FINDINGS_MAX, check
from specmux_tools.document_checks.findings import Level

V1 = GroupVersion("apis/example.com/v1")
OK = {"200": {"description": "d"}}
OPENAPI: dict[str, Any] = {
    "openapi": "3.0.0",
    "info": {"title": "t", "version": "1"},
    "paths": {"/apis/example.com/v1/a": {"get": {"operationId": "o", "responses": OK}}},
}
SWAGGER: dict[str, Any] = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}}


def found(document: Any, group_version: GroupVersion | None = None) -> list[tuple[str, str, str]]:
    findings = check(orjson.dumps(document), group_version)
    return [(finding.level, finding.rule, finding.pointer) for finding in findings]


def test_nothing_is_wrong_with_a_valid_document() -> None:
    assert found(OPENAPI, V1) == []
    assert found(SWAGGER) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"paths": {"/apis/example.com/v1/a": {"get": {}}}}, "schema"),
        ({"paths": {"/apis/other.com/v1/a": {}}}, "group-version"),
        ({"components": {"schemas": {"A": {"$ref": "#/components/schemas/B"}}}}, "reference"),
        (
            {
                "paths": {
                    f"/apis/example.com/v1/{name}": OPENAPI["paths"]["/apis/example.com/v1/a"]
                    for name in "ab"
                }
            },
            "operation-id",
        ),
    ],
)
def test_each_rule_of_v3(change: Any, expected: str) -> None:
    assert (expected in [rule for _, rule, _ in found({**OPENAPI, **change}, V1)]) is True


def test_extensions_of_paths_are_free_form_and_the_rest_is_checked() -> None:
    paths = {"x-paths": {"$ref": "#/definitions/none"}, "/a": {"get": {}}}
    assert [rule for _, rule, _ in found({**OPENAPI, "paths": paths})] == ["schema"]


def test_places_are_named() -> None:
    schemas = {"A": {"properties": {"p": {"$ref": "#/components/schemas/B"}}}}
    document = {**OPENAPI, "paths": {"/apis/other.com/v1/a": {}}, "components": {"schemas": schemas}}
    assert ("error", "reference", "/components/schemas/A/properties/p/$ref") in found(document, V1)
    assert ("error", "group-version", "/paths/~1apis~1other.com~1v1~1a") in found(document, V1)
    assert all(rule != "group-version" for _, rule, _ in found(document))


def test_losses_of_swagger_are_warnings_and_notes() -> None:
    document = {**SWAGGER, "schemes": ["https"], "definitions": {"A": {"type": "array"}}}
    assert ("note", "loss", "/schemes") in found(document)
    assert ("warning", "loss", "/unknown") in found({**SWAGGER, "unknown": 1})
    dangling = {**SWAGGER, "definitions": {"A": {"properties": {"p": {"$ref": "#/definitions/B"}}}}}
    assert ("error", "reference", "/definitions/A/properties/p/$ref") in found(dangling)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"openapi": "3.0.0", "a": 1, "a": 2}', b"a: 1\n"])
def test_what_cannot_be_read_is_one_finding(data: bytes) -> None:
    (finding,) = check(data)
    assert (finding.level, finding.rule) == (Level.ERROR, "unread")


def test_a_definition_that_is_not_published_as_it_is() -> None:
    manifest = b"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: 1}\n"
    findings = check(manifest)
    assert {finding.rule for finding in findings} == {"definition"}
    assert {"/metadata/name", "/spec/group", "/spec/names/kind"} <= {each.pointer for each in findings}


def test_schemas_made_of_themselves_do_not_end_the_check() -> None:
    schemas = {"A": {"allOf": [{"$ref": "#/components/schemas/A"}]}}
    assert ("error", "unchecked", "") in found({**OPENAPI, "components": {"schemas": schemas}})


def test_nothing_is_fetched() -> None:
    schemas = {"A": {"$ref": "http://127.0.0.1:1/other.json"}}
    place = ("error", "unchecked", "/components/schemas/A/$ref")
    assert place in found({**OPENAPI, "components": {"schemas": schemas}})


DEFAULTS = {
    "A": {
        "type": "object",
        "properties": {
            "s": {"default": {}, "allOf": [{"$ref": "#/components/schemas/B"}]},
            "n": {"type": "integer", "default": "x"},
        },
    },
    "B": {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}},
}
KIND = {"group": "example.com", "version": "v1", "kind": "A"}


def test_a_default_is_an_error_at_its_place_also_where_a_reference_led_there() -> None:
    answer = {"description": "d", "content": {"a/b": {"schema": {"$ref": "#/components/schemas/A"}}}}
    paths = {"/apis/example.com/v1/a": {"get": {"responses": {"200": answer}}}}
    document = {**OPENAPI, "paths": paths, "components": {"schemas": DEFAULTS}}
    assert found(document) == [
        ("error", "schema", "/components/schemas/A/properties/n/default"),
        ("error", "schema", "/components/schemas/A/properties/s/default"),
    ]


def test_zero_values_that_kubernetes_publishes_are_one_note_and_other_defaults_are_errors() -> None:
    schemas = {**DEFAULTS, "A": {**DEFAULTS["A"], "x-kubernetes-group-version-kind": [KIND]}}
    assert found({**OPENAPI, "components": {"schemas": schemas}}) == [
        ("error", "schema", "/components/schemas/A/properties/n/default"),
        ("note", "zero-default", "/components/schemas/A/properties/s/default"),
    ]


@pytest.mark.parametrize("is_yaml", [False, True])
def test_findings_have_the_line_at_which_their_text_has_them(is_yaml: bool) -> None:
    document = {**OPENAPI, "components": {"schemas": DEFAULTS}}
    if is_yaml:
        text = yaml.safe_dump(document, sort_keys=False).encode()
    else:
        text = orjson.dumps(document, option=orjson.OPT_INDENT_2)
    lines = text.decode().splitlines()
    findings = check(text)
    assert len(findings) == 2
    for finding in findings:
        assert finding.line is not None
        assert finding.column is not None
        assert lines[finding.line - 1][finding.column - 1 :].lstrip('"').startswith("default")


def test_what_is_no_text_has_no_lines() -> None:
    (finding,) = check(encode({**OPENAPI, "paths": {"/a": {"get": {}}}}, CBOR))
    assert (finding.pointer, finding.line) == ("/paths/~1a/get", None)


def test_findings_are_bounded() -> None:
    items = {f"/apis/other.com/v1/{number}": {} for number in range(FINDINGS_MAX + 10)}
    assert len(found({**OPENAPI, "paths": items}, V1)) == FINDINGS_MAX + 1


@pytest.mark.long
def test_native_documents_have_faults_in_defaults_alone() -> None:
    findings = check(read(documents("1.35")["api/v1"]), GroupVersion("api/v1"))
    assert [(finding.level, finding.rule) for finding in findings] == [(Level.NOTE, "zero-default")]
    small = check(read(documents("1.35")["apis/batch/v1"]), GroupVersion("apis/batch/v1"))
    assert {finding.level for finding in small} <= {Level.NOTE}


@pytest.mark.parametrize("path", files(DATA / "defects", "0*.json"))
def test_it_never_raises(path: Path) -> None:
    check(read(path))
