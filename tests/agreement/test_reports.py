"""``validate``, ``check`` and ``diff`` write the same forms of report, whatever texts documents hold."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from specmux_aggregator.cli import main
from specmux_tools.reports import FORMS

DOCS = Path(__file__).resolve().parents[2] / "docs"
HOSTILE = "\x01\x1b[31m\ufffe\ud7ff]]>&<\"'\r\n::error::%"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))


def crd(properties: dict[str, Any]) -> dict[str, Any]:
    spec = {"type": "object", "properties": properties}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ws.a.io"},
        "spec": {
            "group": "a.io",
            "scope": "Namespaced",
            "names": {"kind": "W", "plural": "ws", "singular": "w", "listKind": "WList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


@pytest.fixture
def commands(tmp_path: Path) -> dict[str, list[str]]:
    """A command line each that finds something, in documents whose every name is hostile."""

    def write(name: str, value: Any) -> str:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))
        return str(file)

    number = {"type": "integer", "minimum": 1}
    operation = {"parameters": [{"name": f"x{HOSTILE}", "in": "nowhere"}], "responses": {}}
    document = {
        "openapi": "3.0.0",
        "info": {"title": "t"},
        "paths": {f"/a{HOSTILE}": {"get": operation}},
        "components": {"schemas": {f"K{HOSTILE}": {"type": f"no{HOSTILE}"}}},
    }
    old = write("old.json", crd({f"k{HOSTILE}": {"type": "string"}, "n": number}))
    new = write("new.json", crd({"n": number}))
    spec = {"n": 0, f"u{HOSTILE}": 1}
    item = {"apiVersion": "a.io/v1", "kind": "W", "metadata": {"name": f"x{HOSTILE}"}, "spec": spec}
    return {
        "check": ["check", write("apis/a.io/v1.json", document)],
        "diff": ["diff", old, new],
        "validate": ["validate", write("object.json", item), "--file", new],
    }


def written(command: list[str], form: str) -> str:
    result = CliRunner().invoke(main, [*command, "-o", form], prog_name="specmux")
    assert result.exit_code in (1, 5), result.output
    return result.stdout


every_command = pytest.mark.parametrize("name", ["check", "diff", "validate"])


@every_command
def test_every_form_is_written_and_holds_nothing_that_a_terminal_obeys(
    commands: dict[str, list[str]], name: str
) -> None:
    for form in FORMS:
        text = written(commands[name], form)
        assert text.endswith("\n"), form
        assert all(mark.isprintable() or mark == "\n" for mark in text) or form == "json", form
        assert "\n::error::" not in text, form


@pytest.mark.parametrize("name", ["check", "diff", "validate", "upgrade"])
def test_json_is_what_the_schema_in_docs_says(commands: dict[str, list[str]], name: str) -> None:
    schema = json.loads((DOCS / f"{name}-report.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    item = commands["validate"][1]
    command = commands.get(name) or ["upgrade", "--from", "1.36", "--to", "1.37", item]
    report = json.loads(written(command, "json"))
    Draft202012Validator(schema).validate(report)
    assert not Draft202012Validator(schema).is_valid([1])


@every_command
def test_junit_has_what_jenkins_requires(commands: dict[str, list[str]], name: str) -> None:
    root = ET.fromstring(written(commands[name], "junit"))
    assert int(root.attrib["failures"]) > 0
    for suite in root:
        assert suite.tag == "testsuite"
        assert {"name", "tests", "failures", "errors", "time"} <= suite.attrib.keys()
        assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))
        for case in suite.findall("testcase"):
            assert case.attrib.keys() == {"name", "classname", "time"}
            assert {each.tag for each in case} <= {"skipped", "failure", "error", "system-out"}
            assert all(each.attrib.keys() == {"message", "type"} for each in case.findall("failure"))


def test_sarif_has_the_same_members(commands: dict[str, list[str]]) -> None:
    for command in commands.values():
        (run,) = json.loads(written(command, "sarif"))["runs"]
        driver = run["tool"]["driver"]
        assert driver.keys() == {"name", "version", "rules"}
        for result in run["results"]:
            assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
            assert result.keys() == {
                "ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints",
            }  # fmt: skip
            (place,) = result["locations"]
            assert place["physicalLocation"]["region"]["startLine"] >= 1
            assert urlsplit(place["physicalLocation"]["artifactLocation"]["uri"]).path


@every_command
def test_annotations_cannot_be_forged(commands: dict[str, list[str]], name: str) -> None:
    lines = [line for line in written(commands[name], "github").splitlines() if line.startswith("::")]
    assert lines
    assert all(re.match(r"::(error|warning|notice) \S.*?::", line) for line in lines)


@every_command
def test_tap_counts_its_cases(commands: dict[str, list[str]], name: str) -> None:
    version, plan, *lines = written(commands[name], "tap").splitlines()
    cases = [line for line in lines if re.match(r"(not )?ok \d+ - ", line)]
    assert (version, plan) == ("TAP version 13", f"1..{len(cases)}")
    assert any(line.startswith("not ok") for line in cases)
