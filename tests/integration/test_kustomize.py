"""kustomize with the document of ``specmux schemas --layout kustomize``: lists are merged by their keys."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from deadline import DEADLINE
from running.kubectl import KUBECTLS
from specmux_tools.commands.schemas import schemas

STANDALONE = os.environ.get("KUSTOMIZE") or shutil.which("kustomize")
BUILD = [STANDALONE, "build"] if STANDALONE else [str(KUBECTLS[-1]), "kustomize"] if KUBECTLS else []
"""kubectl has a kustomize of its own."""
PARTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"parts": PARTS}}},
                    }
                },
            }
        ],
    },
}


def widget(*parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"parts": list(parts)},
    }


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(value))


@pytest.mark.skipif(not BUILD, reason="neither kustomize nor kubectl is installed: KUSTOMIZE names the first")
@pytest.mark.parametrize("has_schema", [True, False])
def test_a_patch_keeps_the_other_items_of_a_list(tmp_path: Path, has_schema: bool) -> None:
    write(tmp_path / "crds/widget.yaml", DEFINITION)
    write(tmp_path / "widget.yaml", widget({"name": "a", "size": 1}, {"name": "b", "size": 2}))
    patch = yaml.safe_dump(widget({"name": "b", "size": 3}))
    openapi = {"openapi": {"path": "schemas/kustomize.json"}} if has_schema else {}
    write(
        tmp_path / "kustomization.yaml",
        {"resources": ["widget.yaml"], "patches": [{"patch": patch}], **openapi},
    )
    arguments = [str(tmp_path / "schemas"), "--layout", "kustomize", "--directory", str(tmp_path / "crds")]
    assert CliRunner().invoke(schemas, arguments).exit_code == 0
    built = subprocess.run([*BUILD, str(tmp_path)], capture_output=True, text=True, timeout=DEADLINE)
    assert built.returncode == 0, built.stderr
    parts = {part["name"]: part["size"] for part in yaml.safe_load(built.stdout)["spec"]["parts"]}
    assert parts == ({"a": 1, "b": 3} if has_schema else {"b": 3})
