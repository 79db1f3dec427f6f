"""``specmux convert`` of CustomResourceDefinitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from converters.crd.widgets import COMPONENT, widget
from shared_data import DATA, GOLDEN, load, needs, recorded_release
from specmux_converters.yaml import to_yaml
from specmux_tools.commands.convert import convert

KUSTOMIZATION = b"kind: Kustomization\nresources: [widgets.yaml]\n"


def run(*arguments: Any, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(convert, [str(each) for each in arguments], input=stdin)


def written(folder: Path) -> dict[str, Any]:
    return {str(path.relative_to(folder)): orjson.loads(path.read_bytes()) for path in folder.rglob("*.json")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As a kustomization has it: manifests at several depths, other files beside them."""
    other = widget(kind="Gadget", plural="gadgets")
    other["spec"]["versions"][0]["name"] = "v2"
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "widgets.yaml").write_bytes(to_yaml(widget()))
    (tmp_path / "in" / "deep" / "gadgets.json").write_bytes(orjson.dumps(other))
    (tmp_path / "in" / "kustomization.yaml").write_bytes(KUSTOMIZATION)
    return tmp_path / "in"


def test_folder_of_manifests_is_split(folder: Path, tmp_path: Path) -> None:
    result = run(folder, "--split", tmp_path / "out", "--strict")
    assert result.exit_code == 0
    assert result.stderr.count("\n") == result.stderr.count("1 file of kustomize") == 1
    documents = written(tmp_path / "out")
    assert documents.keys() == {"apis/example.com/v1.json", "apis/example.com/v2.json"}
    assert COMPONENT in documents["apis/example.com/v1.json"]["components"]["schemas"]


def test_a_release_is_chosen() -> None:
    texts = {
        release: run("-", *release, stdin=orjson.dumps(widget())).stdout
        for release in ((), ("--release", "v1.37"), ("--release", "1.35"))
    }
    assert texts[()] == texts["--release", "v1.37"]
    assert {"shardSelector" in text for text in (texts[()], texts["--release", "1.35"])} == {True, False}
    refused = run("-", "--release", "1.38", stdin=b"{}")
    assert refused.exit_code == 2
    assert 'no release "1.38": give one of 1.30 to 1.37' in refused.stderr


def test_one_group_version_goes_to_standard_output(folder: Path) -> None:
    result = run("-", stdin=orjson.dumps(widget()))
    assert "/apis/example.com/v1/widgets" in orjson.loads(result.stdout_bytes)["paths"]
    several = run(folder)
    assert several.exit_code == 3
    assert "2 group-versions; write them with --split" in several.stderr


def test_problems_are_losses(folder: Path, tmp_path: Path) -> None:
    (folder / "bad.yaml").write_bytes(to_yaml(widget({"type": "string"}, kind="Bad", plural="bads")))
    (folder / "template.yaml").write_text("kind: CustomResourceDefinition\nspec: {{ .Values.spec }}\n")
    result = run(folder, "--split", tmp_path / "out", "--losses", "text")
    assert result.exit_code == 0
    assert 'bads.example.com: Invalid value: "string": must be object at the root' in result.stderr
    assert "template.yaml: " in result.stderr
    assert run(folder, "--split", tmp_path / "none", "--strict").exit_code == 1
    assert not (tmp_path / "none").exists()


@needs("data/crds", "golden/crd-openapi-v3")
def test_real_manifests_are_written_as_upstream_publishes_them(tmp_path: Path) -> None:
    golden = GOLDEN / "crd-openapi-v3" / "cert-manager"
    release = ("--release", recorded_release(golden.parent))
    result = run(DATA / "crds" / "cert-manager", "--split", tmp_path, "--strict", *release)
    assert result.exit_code == 0, result.stderr
    expected = {
        str(path.relative_to(golden)).removesuffix(".gz"): load(path) for path in golden.rglob("*.gz")
    }
    assert written(tmp_path) == expected
