"""The examples are what their readers take: Compose, GitHub, Argo CD, pre-commit, and our own commands.

GitHub's and Compose's schemas are those that check-jsonschema brings.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from shared_data import DATA, shared
from specmux_aggregator.cli import main
from specmux_converters.releases import NEWEST

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
CHECKER = shutil.which("check-jsonschema", path=str(Path(sys.executable).parent))


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.skipif(CHECKER is None, reason="check-jsonschema is not installed (group dev)")
@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("compose-spec", "examples/compose.yaml"),
        ("github-workflows", "examples/github-workflow.yaml"),
        ("github-workflows", ".github/workflows/release.yaml"),
    ],
)
def test_example_is_what_its_standard_says(schema: str, path: str) -> None:
    command = [str(CHECKER), "--builtin-schema", f"vendor.{schema}", str(ROOT / path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@shared
def test_argo_cd_takes_the_application() -> None:
    definition = DATA / "crds/argo-cd/application-crd.yaml.gz"
    command = ["validate", "--file", str(definition), "--summary", str(EXAMPLES / "argocd-application.yaml")]
    result = CliRunner().invoke(main, command)
    assert (result.exit_code, "1 valid, 0 invalid" in result.output) == (0, True), result.output


def test_chart_takes_the_applications_values() -> None:
    source = load(EXAMPLES / "argocd-application.yaml")["spec"]["source"]
    chart = ROOT / source["path"]
    values = load(chart / "values.yaml")
    for name, value in source["helm"]["valuesObject"].items():
        values[name] = {**values[name], **value}
    jsonschema.validate(values, json.loads((chart / "values.schema.json").read_text()))


def test_compose_gives_flags_that_serve_has() -> None:
    command = load(EXAMPLES / "compose.yaml")["services"]["specmux"]["command"]
    assert unknown_options(["specmux", *command]) == []


def test_workflow_and_hooks_run_commands_that_there_are() -> None:
    workflow = load(EXAMPLES / "github-workflow.yaml")
    lines = [step["run"] for step in workflow["jobs"]["diff"]["steps"] if "run" in step]
    commands = [shlex.split(line.partition("specmux/specmux ")[2]) for line in lines]
    hooks = {hook["id"]: hook["entry"].split() for hook in load(ROOT / ".pre-commit-hooks.yaml")}
    for repository in load(EXAMPLES / "pre-commit-config.yaml")["repos"]:
        commands += [[*hooks[hook["id"]], *hook.get("args", [])] for hook in repository["hooks"]]
    assert len(commands) > 1
    assert [unknown_options(command) for command in commands] == [[]] * len(commands)


MISTAKES = {
    "crds/boxes.yaml": ("type: integer", "type: int", 'Unsupported value: "int"'),
    "manifests/box.yaml": ("size: 1", "size: one", "spec.size in body must be of type integer"),
    "manifests/web.yaml": ("replicas: 1", "replicas: one", "cannot unmarshal string into Go struct field"),
    "manifests/web.yaml ": (
        "image: web",
        "imge: web",
        'unknown field "spec.template.spec.containers[0].imge"',
    ),
    "manifests/web.yaml  ": ("selector: {matchLabels: {app: web}}", "", "spec.selector: Required value"),
}
FILES = {
    "crds/boxes.yaml": """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  names: {plural: boxes, kind: Box, singular: box, listKind: BoxList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
""",
    "manifests/box.yaml": "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\nspec: {size: 1}\n",
    "manifests/web.yaml": """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web
""",
}


def hook_command(*, of_example: bool) -> list[str]:
    """What pre-commit runs, with the files unless the hook takes none."""
    (hook,) = load(ROOT / ".pre-commit-hooks.yaml")
    if of_example:
        (repository,) = load(EXAMPLES / "pre-commit-config.yaml")["repos"]
        hook |= repository["hooks"][0]
    files = sorted(FILES) if hook.get("pass_filenames", True) else []
    return [*hook["entry"].split(), *hook["args"], *files][1:]


@pytest.mark.parametrize("of_example", [False, True])
@pytest.mark.parametrize("mistake", [None, *MISTAKES])
def test_pre_commit_fails_on_each_mistake(
    mistake: str | None, of_example: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    said = ""
    if mistake is not None:
        right, wrong, said = MISTAKES[mistake]
        name = mistake.strip()
        (tmp_path / name).write_text(FILES[name].replace(right, wrong))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, hook_command(of_example=of_example))
    assert (result.exit_code, said in result.output) == (int(mistake is not None), True), result.output


def test_pre_commit_hook_takes_the_newest_release() -> None:
    (hook,) = load(ROOT / ".pre-commit-hooks.yaml")
    assert hook["args"] == [f"--release=1.{NEWEST}"]


def unknown_options(command: list[str]) -> list[str]:
    """Options that the command of ``specmux COMMAND …`` has not."""
    assert command[0] == "specmux"
    found = main.get_command(click.Context(main), command[1])
    assert found is not None, command
    known = {name for each in found.params for name in each.opts}
    given = [word.partition("=")[0] for word in command[2:] if word.startswith("-")]
    return [name for name in given if name not in known]
