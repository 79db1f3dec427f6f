"""Paths in reports: as given for people, from the repository's root for services that know it alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from converters.crd.widgets import of_spec, widget
from specmux_aggregator.cli import main
from specmux_tools.command_line.report_output import repository_root

CI = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a job, below the root of its repository."""
    for name in CI:
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "repo/svc"
    folder.mkdir(parents=True)
    for name, of in (("old", "integer"), ("new", "string")):
        properties = {"properties": {"size": {"type": of}}, "type": "object"}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(widget(of_spec(properties))))
    bad = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}
    (folder / "bad.yaml").write_text(yaml.safe_dump(bad))
    (folder / "wrong.yaml").write_text(yaml.safe_dump({**widget(), "spec": {}}))
    monkeypatch.chdir(folder)
    return folder


COMMANDS = {
    "validate": ("validate", "--file", "new.yaml", "bad.yaml"),
    "check": ("check", "wrong.yaml", "--no-cache"),
    "diff": ("diff", "old.yaml", "new.yaml"),
    "upgrade": ("upgrade", "--from", "old.yaml", "--to", "new.yaml", "bad.yaml"),
}


def files(form: str, command: str, *, folder: str = "") -> set[str]:
    arguments = [f"{folder}{word}" if word.endswith(".yaml") else word for word in COMMANDS[command]]
    output = CliRunner().invoke(main, [*arguments, "-o", form], catch_exceptions=False).stdout
    if form == "sarif":
        results = json.loads(output)["runs"][0]["results"]
        places = [place["physicalLocation"] for each in results for place in each["locations"]]
        return {place["artifactLocation"]["uri"] for place in places}
    words = output.replace(",", " ").replace(":", " ").replace("=", " ").replace("&quot;", " ").split()
    return {word.strip("\"'`;<>()") for word in words if ".yaml" in word}


@pytest.mark.parametrize("variable", [*CI, ".git"])
@pytest.mark.parametrize("form", ["github", "sarif"])
@pytest.mark.parametrize("command", COMMANDS)
def test_annotations_name_paths_from_the_root(
    variable: str, form: str, command: str, service: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable == ".git":
        (service.parent / ".git").mkdir()
    else:
        monkeypatch.setenv(variable, str(service.parent))
    found = files(form, command)
    assert found
    assert all(each.startswith("svc/") for each in found)
    assert files(form, command, folder=f"{service}/") == found
    monkeypatch.chdir(service.parent)
    assert files(form, command, folder="svc/") == found


@pytest.mark.parametrize("form", ["junit", "tap", "markdown"])
def test_other_forms_for_services_do_so_too(
    form: str, service: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(service.parent))
    assert {each for each in files(form, "validate") if each.startswith("svc/")}


@pytest.mark.parametrize("form", ["text", "json"])
def test_text_and_json_name_files_as_given(form: str, service: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(service.parent))
    assert files(form, "validate") == {"bad.yaml"}


def test_outside_of_a_repository_files_are_named_as_given(
    service: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "elsewhere"))
    assert files("github", "validate") == {"bad.yaml"}


def test_the_root_is_the_nearest_checkout_within_the_workspace(tmp_path: Path) -> None:
    inner = tmp_path / "work/inner/svc"
    inner.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    workspace = {"GITHUB_WORKSPACE": str(tmp_path / "work")}
    assert repository_root(inner, {}) == tmp_path
    assert repository_root(inner, workspace) == tmp_path / "work"
    (tmp_path / "work/inner/.git").write_text("gitdir: elsewhere")
    assert repository_root(inner, workspace) == tmp_path / "work/inner"
