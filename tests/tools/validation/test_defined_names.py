"""Restrictions that a definition puts on apiVersion, kind and metadata, against what apiextensions-apiserver
0.37.2 said of 880 generated objects; and names that an apiserver generates before it validates.

Recorded with the judge that ``tests/benchmarks/go/apiextensions`` is, built of 0.37.2.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from jsonschema import Draft7Validator

from specmux_aggregator.cli import main
from specmux_converters.crd import AS_DEFINED, build
from specmux_converters.json_schema.crds import custom_definitions
from specmux_converters.json_schema.document import DocumentSchemas
from specmux_converters.json_schema.forms import SchemaForm
from specmux_tools.kinds import DocumentSet
from specmux_tools.queries import validate
from specmux_tools.validation import Check, Severity, ValidationReport, Validator

RECORDED = Path(__file__).parent / "recorded" / "defined-names.jsonl.gz"
STRING = {"type": "string"}


def definition(schema: dict[str, Any]) -> dict[str, Any]:
    names = {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "singular": "widget"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**head, "metadata": {"name": "widgets.example.com"}, "spec": spec}


def validator(schema: dict[str, Any], **options: Any) -> Validator:
    built = build([definition(schema)], templates=AS_DEFINED)
    assert not built.problems
    return Validator(DocumentSet(built.documents), **options)


def named(**restrictions: Any) -> dict[str, Any]:
    metadata = {"type": "object", "properties": {"name": {**STRING, **restrictions}}}
    return {"type": "object", "properties": {"metadata": metadata, "spec": {"type": "object"}}}


def ruled(*rules: str) -> dict[str, Any]:
    return {"type": "object", "x-kubernetes-validations": [{"rule": rule} for rule in rules]}


def widget(**metadata: Any) -> bytes:
    return orjson.dumps({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata})


def errors(report: ValidationReport) -> list[str]:
    return [each.message for each in report.violations if each.severity is Severity.ERROR]


def test_every_recorded_answer_is_ours(tally: Callable[[str, int], None]) -> None:
    cases = [orjson.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    wrong = []
    for case in cases:
        report = validator(case["schema"], ratchets=False).validate(
            orjson.dumps(case["object"]), old=case.get("old")
        )
        parts = ["schema", "metadata", "embedded", "lists", "rules"]
        if any(each.check is Check.NOT_CHECKED for each in report.violations):
            parts.remove("rules")  # they wait for the schema
        wanted = {text for part in parts for text in case["answer"].get(part, [])}
        if set(errors(report)) != wanted:
            wrong.append(f"{set(errors(report)) ^ wanted} of {case['object']} by {case['schema']}")
    tally("restricted names recorded from apiextensions", len(cases))
    assert len(cases) >= 800
    assert not wrong, "\n".join(wrong)


def test_an_unchanged_name_is_left_alone() -> None:
    stored = orjson.loads(widget(name="other", uid="1", resourceVersion="1"))
    report = validator(named(enum=["default"])).validate(orjson.dumps(stored), old=stored)
    assert errors(report) == []


@pytest.mark.parametrize(
    ("name", "accepts"), [("default", True), ("other", False)], ids=["the only name", "another"]
)
def test_the_library_and_json_schemas_judge_by_the_definition(name: str, accepts: bool) -> None:
    written = definition(named(enum=["default"]))
    text = b"---\n" + orjson.dumps(written) + b"\n---\n" + widget(name=name)
    assert (validate({}, text)[-1].is_valid) is accepts
    (key,) = built = build([written], templates=AS_DEFINED).documents
    schemas = DocumentSchemas(built[key], key)
    for form in (SchemaForm(is_strict=True), SchemaForm(is_strict=True, is_named=True)):
        schema = schemas.kind(schemas.kinds[0], form)
        assert Draft7Validator(schema).is_valid(orjson.loads(widget(name=name))) is accepts
        assert Draft7Validator(schema).is_valid(orjson.loads(widget(generateName="run-")))


def test_written_definitions_keep_the_restrictions() -> None:
    written = definition(named(enum=["default"]))
    (key,) = built = build([written], templates=AS_DEFINED).documents
    (found,) = custom_definitions({key: DocumentSchemas(built[key], key)})
    again = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert again["properties"]["metadata"] == named(enum=["default"])["properties"]["metadata"]
    assert "x-specmux" not in str(found)


def test_what_is_served_has_no_keyword_of_ours() -> None:
    assert "x-specmux" not in str(build([definition(named(enum=["default"]))]).documents)


def test_what_get_prints_has_none_either(tmp_path: Path) -> None:
    (tmp_path / "crd.json").write_bytes(orjson.dumps(definition(named(enum=["default"]))))
    done = CliRunner().invoke(main, ["get", "example.com/v1", "--file", str(tmp_path / "crd.json")])
    (wanted,) = build([definition(named(enum=["default"]))]).documents.values()
    assert (done.exit_code, orjson.loads(done.stdout)) == (0, wanted)


GENERATED: list[tuple[dict[str, Any], str, str]] = [
    (ruled("self.metadata.name.size() <= 40"), "run-", "valid"),
    (ruled("self.metadata.name.size() <= 8"), "run-", "invalid"),
    (ruled("self.metadata.name.startsWith('run-')"), "run-", "valid"),
    (ruled("self.metadata.name.startsWith('run-')"), "walk-", "invalid"),
    (ruled("self.metadata.name.matches('^run-[a-z0-9]{5}$')"), "run-", "valid"),
    (ruled("self.metadata.name.matches('^run-[0-9]+$')"), "run-", "open"),
    (ruled("!self.metadata.name.endsWith('b')"), "run-", "open"),
    (ruled("has(self.metadata.name) && self.metadata.generateName == 'run-'"), "run-", "valid"),
    (ruled("!self.metadata.name.endsWith('b')", "false"), "run-", "invalid"),
    (named(maxLength=9), "run-", "valid"),
    (named(maxLength=8), "run-", "invalid"),
    (named(enum=["default"]), "run-", "invalid"),
    (named(pattern="^run-"), "run-", "valid"),
    (named(pattern="[b-k]$"), "run-", "open"),
    (named(maxLength=63), "a" * 90, "valid"),
]


@pytest.mark.parametrize(("schema", "prefix", "verdict"), GENERATED)
def test_a_generated_name_is_judged_where_its_end_does_not_matter(
    schema: dict[str, Any], prefix: str, verdict: str
) -> None:
    judge = validator(schema, keeps_objects=True)
    report = judge.validate(widget(generateName=prefix))
    assert (report.is_valid, report.is_complete) == {
        "valid": (True, True),
        "invalid": (False, report.is_complete),
        "open": (True, False),
    }[verdict]
    assert "name" not in (report.stored or {"metadata": {}})["metadata"]


def test_without_a_prefix_no_name_is_generated() -> None:
    report = validator(ruled("self.metadata.name.size() > 0")).validate(widget(namespace="a"))
    assert errors(report)[0] == "metadata.name: Required value: name or generateName is required"
