"""``validate``, ``check`` and ``diff`` write the same forms of report, whatever texts documents hold."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from specmux_aggregator.cli import main

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


@pytest.mark.parametrize("name", ["check", "diff", "validate"])
def test_nothing_that_a_terminal_obeys_is_printed(commands: dict[str, list[str]], name: str) -> None:
    for form in ("text", "junit"):
        text = written(commands[name], form)
        assert all(mark.isprintable() or mark == "\n" for mark in text), form


@pytest.mark.parametrize("name", ["check", "diff", "validate"])
def test_junit_is_well_formed(commands: dict[str, list[str]], name: str) -> None:
    root = ET.fromstring(written(commands[name], "junit"))
    assert int(root.attrib["failures"]) > 0
