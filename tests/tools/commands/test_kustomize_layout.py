"""Folders as kubebuilder and kustomize lay them out: every command names in one line what is no manifest."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from converters.crd.widgets import of_spec, widget
from specmux_aggregator.cli import main

DEFINITION = widget(of_spec({"type": "object", "properties": {"size": {"type": "integer"}}}))
NAME = DEFINITION["metadata"]["name"]
PATCH = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": NAME},
    "spec": {"conversion": {"strategy": "None"}},
}
INJECTION = {**PATCH, "metadata": {"name": NAME, "annotations": {"cert-manager.io/inject-ca-from": "a/b"}}}
del INJECTION["spec"]
FILES = {
    "bases/widgets.yaml": DEFINITION,
    "kustomization.yaml": {
        "resources": ["bases/widgets.yaml"],
        "patches": [{"path": "patches/webhook.yaml"}, {"path": "patches/json.yaml"}],
        "configurations": ["kustomizeconfig.yaml"],
    },
    "kustomizeconfig.yaml": {"nameReference": [{"kind": "Service", "version": "v1"}]},
    "patches/webhook.yaml": PATCH,
    "patches/json.yaml": [{"op": "add", "path": "/metadata/labels", "value": {}}],
    "patches/cainjection_in_widgets.yaml": INJECTION,
}
SKIPPED = 5


@pytest.fixture
def crd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in FILES.items():
        file = tmp_path / "config/crd" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(value))
    widget_object = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    (tmp_path / "widget.yaml").write_text(yaml.safe_dump(widget_object))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "config/crd"


def run(*words: str) -> Result:
    return CliRunner().invoke(main, [*words], catch_exceptions=False)


COMMANDS = {
    "check": ("check", "config/crd", "--no-cache", "--jobs", "1"),
    "convert": ("convert", "config/crd"),
    "diff": ("diff", "config/crd", "config/crd"),
    "explain": ("explain", "widget.spec.size", "--directory", "config/crd"),
    "merge": ("merge", "config/crd"),
    "schemas": ("schemas", "out", "--directory", "config/crd"),
    "search": ("search", "size", "--directory", "config/crd"),
    "upgrade": ("upgrade", "--from", "config/crd", "--to", "config/crd", "widget.yaml"),
    "validate": ("validate", "--directory", "config/crd", "widget.yaml"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reads_the_definitions_and_names_the_rest_once(command: str, crd: Path) -> None:
    result = run(*COMMANDS[command])
    assert result.exit_code == 0, result.output
    (line,) = [each for each in result.stderr.splitlines() if "kustomize" in each]
    assert f"{SKIPPED} files of kustomize" in line
    assert "rror" not in result.stderr


@pytest.mark.parametrize("patch", ["patches/webhook.yaml", "patches/json.yaml", "kustomizeconfig.yaml"])
@pytest.mark.parametrize("command", ["check", "validate"])
def test_one_of_them_alone_is_skipped_too(command: str, patch: str, crd: Path) -> None:
    """As pre-commit names files: those that changed."""
    words = ("--no-cache",) if command == "check" else ("--directory", "config/crd", "widget.yaml")
    result = run(command, f"config/crd/{patch}", *words)
    assert result.exit_code == 0, result.output
    assert f"skipped: config/crd/{patch}" in result.stderr


def test_a_definition_that_lacks_something_is_no_patch(tmp_path: Path) -> None:
    for lacking in ("names", "versions", "group"):
        spec = {name: value for name, value in DEFINITION["spec"].items() if name != lacking}
        file = tmp_path / f"{lacking}.yaml"
        file.write_text(yaml.safe_dump({**DEFINITION, "spec": spec}))
        assert run("check", str(file), "--no-cache").exit_code == 1
    file.write_text(yaml.safe_dump({**PATCH, "spec": {}}))
    assert run("check", str(file), "--no-cache").exit_code == 1


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_revision_is_compared_with_the_folder(crd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "one")):
        subprocess.run(["git", *identity, *command], check=True, capture_output=True)
    text = widget(of_spec({"type": "object", "properties": {"size": {"type": "string"}}}))
    (crd / "bases/widgets.yaml").write_text(yaml.safe_dump(text))
    assert run("diff", "git:HEAD:config/crd", "config/crd").exit_code == 1
    monkeypatch.chdir("config")
    assert run("diff", "git:HEAD:crd", "crd").exit_code == 1


@pytest.mark.parametrize("file", ["overlay/patch.yaml", "overlay"])
def test_a_patch_of_an_overlay_is_no_whole_object(file: str, crd: Path, tmp_path: Path) -> None:
    (tmp_path / "overlay").mkdir()
    patch = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": "wrong"}}
    (tmp_path / "overlay/patch.yaml").write_text(yaml.safe_dump(patch))
    words = ("validate", "--directory", "config/crd", file, "widget.yaml")
    assert run(*words).exit_code == 1
    for member in ({"patchesStrategicMerge": ["patch.yaml"]}, {"patches": [{"path": "./patch.yaml"}]}):
        (tmp_path / "overlay/kustomization.yaml").write_text(yaml.safe_dump(member))
        assert run(*words).exit_code == 0


@pytest.mark.parametrize(("said", "code"), [("true", 0), ("anything", 0), ("false", 1)])
@pytest.mark.parametrize("command", ["validate", "upgrade"])
def test_objects_that_stay_on_this_side_are_skipped(
    command: str, said: str, code: int, crd: Path, tmp_path: Path
) -> None:
    metadata = {"name": "b", "annotations": {"config.kubernetes.io/local-config": said}}
    local = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata}
    (tmp_path / "local.yaml").write_text(yaml.safe_dump(local))
    words = {
        "validate": ("validate", "--directory", "config/crd"),
        "upgrade": ("upgrade", "--from", "config/crd", "--to", "config/crd"),
    }[command]
    result = run(*words, "local.yaml", "widget.yaml")
    assert result.exit_code == (5 if code and command == "upgrade" else code), result.output
    assert ("1 object with config.kubernetes.io/local-config: skipped" in result.stderr) is (code == 0)


def test_composite_resource_definitions_are_unknown_and_what_helps_is_said(crd: Path, tmp_path: Path) -> None:
    composite = {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xbases.example.org"},
        "spec": {"group": "example.org", "names": {"kind": "XBase", "plural": "xbases"}},
    }
    (tmp_path / "xrd.yaml").write_text(yaml.safe_dump(composite))
    for words, code in (
        (("check", "xrd.yaml", "--no-cache"), 3),
        (("convert", "xrd.yaml"), 3),
        (("explain", "xbase", "--file", "xrd.yaml"), 3),
        (("validate", "--directory", "config/crd", "xrd.yaml", "widget.yaml"), 1),
    ):
        result = run(*words)
        assert result.exit_code == code, result.output
        assert '"kubectl get crd NAME -o yaml"' in result.output


@pytest.mark.parametrize("command", ["check", "convert", "explain", "merge", "diff"])
def test_a_template_of_helm_is_recognised(command: str, tmp_path: Path) -> None:
    file = tmp_path / "crd.yaml"
    file.write_text("{{- if .Values.crds }}\n" + yaml.safe_dump(DEFINITION) + "{{- end }}\n")
    words = {"explain": ("widget", "--file", str(file)), "diff": (str(file), str(file))}
    result = run(command, *words.get(command, (str(file),)))
    assert result.exit_code in {1, 3}
    assert "a template? Render it first: helm template CHART" in result.output
