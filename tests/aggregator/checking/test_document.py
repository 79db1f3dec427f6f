"""What is found in one document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from shared_data import DATA, documents, files, read, shared
from specmux_aggregator.checking.document import FINDINGS_MAX, check
from specmux_aggregator.checking.findings import Level
from specmux_converters.group_versions import GroupVersion

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
    assert [finding.rule for finding in check(manifest)] == ["definition"]


def test_schemas_made_of_themselves_do_not_end_the_check() -> None:
    schemas = {"A": {"allOf": [{"$ref": "#/components/schemas/A"}]}}
    assert ("warning", "schema", "") in found({**OPENAPI, "components": {"schemas": schemas}})


def test_nothing_is_fetched() -> None:
    schemas = {"A": {"$ref": "http://127.0.0.1:1/other.json"}}
    levels = {level for level, rule, _ in found({**OPENAPI, "components": {"schemas": schemas}})}
    assert "warning" in levels


def test_findings_are_bounded() -> None:
    items = {f"/apis/other.com/v1/{number}": {} for number in range(FINDINGS_MAX + 10)}
    assert len(found({**OPENAPI, "paths": items}, V1)) == FINDINGS_MAX + 1


@shared
def test_native_documents_have_faults_in_defaults_alone() -> None:
    findings = check(read(documents("1.35")["api/v1"]), GroupVersion("api/v1"))
    assert {finding.rule for finding in findings} == {"schema"}
    small = check(read(documents("1.35")["apis/batch/v1"]), GroupVersion("apis/batch/v1"))
    assert {finding.rule for finding in small} <= {"schema"}


@pytest.mark.parametrize("path", files(DATA / "defects", "0*.json"))
def test_it_never_raises(path: Path) -> None:
    check(read(path))
