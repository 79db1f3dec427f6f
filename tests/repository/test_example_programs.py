"""The programs of examples/programs run against a server on loopback. `make lint` checks their types."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deadline import DEADLINE
from fakes.openapi_server import Reference
from fakes.openapi_thread import ThreadedServer, serving_in_thread
from specmux_converters import build, canonical

PROGRAMS = Path(__file__).resolve().parents[2] / "examples" / "programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))


def definition(**properties: Any) -> dict[str, Any]:
    spec = {"type": "object", "required": ["size"], "properties": properties}
    schema = {"type": "object", "properties": {"spec": spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


OLD = definition(
    size={"type": "integer", "description": "The size of the widget."}, colour={"type": "string"}
)
NEW = definition(size={"type": "integer"})
OBJECT = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
SWAGGER = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}, "definitions": {}}


def bodies(definition: dict[str, Any]) -> dict[str, bytes]:
    return {key: canonical(document) for key, document in build([definition]).documents.items()}


def run(name: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAMS / f"{name}.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
        cwd=home,
        env={**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")},
    )


@pytest.fixture
def server() -> Any:
    with serving_in_thread(Reference(bodies(OLD))) as serving:
        yield serving


@pytest.mark.parametrize(
    ("name", "arguments", "output"),
    [
        ("explain_field", ("widgets.spec.size",), "The size of the widget."),
        ("search_fields", ("size widget",), "Widget spec.size"),
        ("merge_documents", (), "schemas"),
        ("offline_bundle", ("bundle",), "entries imported; apis/example.com/v1"),
        ("async_client", (), "apis/example.com/v1"),
    ],
)
def test_program_prints(
    server: ThreadedServer, tmp_path: Path, name: str, arguments: tuple[str, ...], output: str
) -> None:
    done = run(name, server.url, *arguments, home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert output in done.stdout


@pytest.mark.parametrize(("size", "code"), [(1, 0), ("big", 1)])
def test_validation_fails_for_what_an_apiserver_refuses(
    server: ThreadedServer, tmp_path: Path, size: Any, code: int
) -> None:
    (tmp_path / "w.json").write_text(json.dumps({**OBJECT, "spec": {"size": size}}))
    done = run("validate_manifests", server.url, "w.json", home=tmp_path)
    assert (done.returncode, done.stderr) == (code, "")
    assert ("spec.size" in done.stdout) == bool(code)


def test_comparison_fails_for_a_removed_field(server: ThreadedServer, tmp_path: Path) -> None:
    with serving_in_thread(Reference(bodies(NEW))) as after:
        done = run("compare_servers", server.url, after.url, home=tmp_path)
        assert run("compare_servers", after.url, after.url, home=tmp_path).returncode == 0
    assert (done.returncode, done.stderr) == (1, "")
    assert "colour" in done.stdout


def test_follower_prints_a_publication(server: ThreadedServer, tmp_path: Path) -> None:
    done = run("follow_changes", server.url, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "apis/example.com/v1" in done.stdout


def test_conversions_print_what_they_made(tmp_path: Path) -> None:
    (tmp_path / "swagger.json").write_text(json.dumps(SWAGGER))
    (tmp_path / "crd.json").write_text(json.dumps(OLD))
    assert run("convert_swagger", "swagger.json", home=tmp_path).returncode == 0
    done = run("build_definitions", "crd.json", home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "com.example.v1.Widget" in done.stdout
    assert json.loads((tmp_path / "apis_example.com_v1.json").read_text())["openapi"] == "3.0.0"


def test_every_program_is_run() -> None:
    tested = Path(__file__).read_text()
    assert len(NAMES) == 10
    assert all(f'"{name}"' in tested for name in NAMES)
