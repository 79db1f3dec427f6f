"""The forms of a report: each is what its reader expects, whatever the documents hold."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from data.compared import compared_documents, compared_specs, document
from specmux_tools.differences import ChangeSeverity
from specmux_tools.differences.reports import Report, render, report_of
from specmux_tools.reports import FORMS

SCHEMA = Path(__file__).parents[3] / "docs" / "diff-report.schema.json"
STRING = {"type": "string"}
HOSTILE = "x\x1b[31m`]]>&\"'<|\n::error::%"


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def mixed() -> Report:
    """One change of each severity, and one at two places."""
    leaf = {"$ref": "#/components/schemas/Leaf"}
    old = document(fields(a=leaf, b=leaf, c=STRING, d=STRING), {"Leaf": fields(x=STRING)})
    new = document(
        {**fields(a=leaf, b=leaf, c=STRING, d=STRING, e=STRING), "required": ["c"]}, {"Leaf": fields()}
    )
    return report_of(compared_documents(old, new), old="1.json", new="2.json")


def many(count: int) -> Report:
    old = fields(**{f"f{n}": STRING for n in range(count)})
    return report_of(compared_specs(old, fields()), old="a", new="b")


def hostile() -> Report:
    return report_of(
        compared_specs(fields(**{HOSTILE: STRING}), fields()), old=f"old {HOSTILE}", new=f"new {HOSTILE}"
    )


def test_a_change_is_one_entry_with_all_its_places() -> None:
    told = [(change.id, [place.path for place in change.places]) for change in mixed().changes]
    assert told == [
        ("field-removed", ["spec.a.x", "spec.b.x"]),
        ("field-became-required", ["spec.c"]),
        ("field-added", ["spec.e"]),
    ]


def test_a_fingerprint_is_of_what_a_change_is() -> None:
    change = mixed().changes[1]
    parts = ["field-became-required", "apis/example.com/v1", "Widget", "spec.c", None]
    assert change.fingerprint == hashlib.sha256(orjson.dumps(parts)).hexdigest()[:16]


@pytest.mark.parametrize("report", [mixed(), many(30), hostile()])
def test_json_is_as_its_schema_says(report: Report) -> None:
    schema = orjson.loads(SCHEMA.read_bytes())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(orjson.loads(render(report, "json")))


def test_text_shows_the_first_place_and_how_many_more() -> None:
    assert render(mixed(), "text") == (
        "breaking  apis/example.com/v1 Widget spec.a.x (and 1 more)\n"
        "          field-removed: the field is gone: string (breaks writers, readers and stored objects)\n"
        "warning   apis/example.com/v1 Widget spec.c\n"
        "          field-became-required: the field is required now"
        " (may concern writers and stored objects)\n"
        "notice    apis/example.com/v1 Widget spec.e\n"
        "          field-added: the field is new: string\n"
        "1 breaking at 2 places, 1 warning, 1 notice\n"
    )


def test_text_is_coloured_where_asked() -> None:
    assert "\x1b[31mbreaking \x1b[0m" in render(mixed(), "text", coloured=True)
    assert "\x1b" not in render(hostile(), "text")


@pytest.mark.parametrize(("fail_on", "failures"), [("breaking", 1), ("warning", 2), ("notice", 3), (None, 0)])
def test_junit_fails_what_fails_the_run(fail_on: str | None, failures: int) -> None:
    level = ChangeSeverity[fail_on.upper()] if fail_on else None
    root = ET.fromstring(render(mixed(), "junit", fail_on=level))
    assert len(root.findall(".//failure")) == failures
    assert root.get("failures") == str(failures)
    assert root.get("tests") == str(len(root.findall(".//testcase"))) == "3"


def test_junit_has_a_test_where_nothing_changed() -> None:
    root = ET.fromstring(render(many(0), "junit"))
    assert [case.get("name") for case in root.findall(".//testcase")] == ["no changes"]


def test_junit_of_hostile_names_is_xml() -> None:
    root = ET.fromstring(render(hostile(), "junit"))
    assert "\\u001b" in str(root.find(".//testcase").get("name"))  # type: ignore[union-attr]


def test_sarif_has_a_result_for_each_change() -> None:
    run = orjson.loads(render(mixed(), "sarif"))["runs"][0]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result, change in zip(run["results"], mixed().changes, strict=True):
        assert rules[result["ruleIndex"]] == result["ruleId"] == change.id
        assert list(result["partialFingerprints"].values()) == [change.fingerprint]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "2.json"


def test_github_gets_ten_of_a_level_and_how_many_were_left_out() -> None:
    lines = render(many(25), "github").splitlines()
    assert sum(line.startswith("::error title=field-removed::") for line in lines) == 10
    assert lines[-1] == "25 breaking; 15 changes are not shown as annotations"


def test_github_commands_cannot_be_forged() -> None:
    commands = [line for line in render(hostile(), "github").splitlines() if line.startswith("::")]
    assert len(commands) == 1
    assert commands[0].endswith(
        '%25"]: the field is gone: string (breaks writers, readers and stored objects)'
    )


def test_markdown_keeps_foreign_text_in_its_place() -> None:
    text = render(hostile(), "markdown")
    assert "\x1b" not in text
    assert re.search(r"\* `` apis/example\.com/v1 Widget spec\[\"x.*\"\] ``: ", text)
    assert "## Breaking" in text
    assert "\\<" in text.splitlines()[0]


def test_every_form_says_that_nothing_changed() -> None:
    for form in FORMS:
        assert render(many(0), form)
    with pytest.raises(ValueError, match="none of text"):
        render(many(0), "yaml")
