"""The examples are what their readers take: Compose, GitHub, Argo CD, pre-commit, and our own commands.

GitHub's and Compose's schemas are those that check-jsonschema brings.
"""

from __future__ import annotations

import json
import re
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

from deadline import DEADLINE
from shared_data import DATA, needs
from specmux_aggregator.cli import main
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.config.source import ConfigSource
from specmux_converters.releases import NEWEST

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
CHECKER = shutil.which("check-jsonschema", path=str(Path(sys.executable).parent))


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.skipif(CHECKER is None, reason="check-jsonschema is not installed (group dev)")
@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("compose-spec", ["examples/compose.yaml"]),
        (
            "github-workflows",
            ["examples/github-workflow.yaml", ".github/workflows/release.yaml", ".github/workflows/ci.yml"],
        ),
        ("github-actions", ["action.yml"]),
        ("gitlab-ci", ["examples/gitlab-ci.yml"]),
    ],
)
def test_example_is_what_its_standard_says(schema: str, paths: list[str]) -> None:
    command = [str(CHECKER), "--builtin-schema", f"vendor.{schema}", *(str(ROOT / path) for path in paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stdout + done.stderr


@needs("data/crds")
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


def test_compose_gives_the_service_a_configuration_and_every_file_that_it_names(tmp_path: Path) -> None:
    compose = load(EXAMPLES / "compose.yaml")
    service = compose["services"]["specmux"]
    assert unknown_options(["specmux", *service["command"]]) == []
    (config,) = service["configs"]
    assert f"--config={config['target']}" in service["command"]
    text = compose["configs"][config["source"]]["content"]
    settings = configured(text, tmp_path)
    assert settings.listen.address == "0.0.0.0"
    mounted = {f"/run/secrets/{name}" for name in service["secrets"] if name in compose["secrets"]}
    mounted |= {each.split(":")[1] for each in service["volumes"]}
    assert set(re.findall(r"(?<![:/\w])/[\w./]+", text)) == mounted


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


def test_situations_of_deploying_are_configurations(tmp_path: Path) -> None:
    cluster, servers, files = (configured(text, tmp_path) for text in blocks("deploy.md", "yaml")[:3])
    assert (cluster.kubernetes.is_meant, cluster.backends) == (True, ())
    assert len(servers.backends) > 1
    assert all(each.group_versions for each in servers.backends)
    assert {each.kind.is_directory for each in files.backends} == {True}


def test_systemd_loads_every_credential_that_the_page_names(tmp_path: Path) -> None:
    (drop_in,) = blocks("deploy.md", "ini")
    loaded = dict(re.findall(r"^LoadCredential=([\w.]+):(\S+)$", drop_in, re.MULTILINE))
    text = next(each for each in blocks("deploy.md", "yaml") if "/run/credentials/" in each)
    configured(text, tmp_path)
    assert set(re.findall(r"/run/credentials/specmux\.service/([\w.]+)", text)) == loaded.keys()
    unit = (EXAMPLES / "specmux.service").read_text()
    (started,) = re.findall(r"^ExecStart=(.+)$", unit, re.MULTILINE)
    console = "\n".join(blocks("deploy.md", "console"))
    program, *words = started.split()
    assert unknown_options(["specmux", *words]) == []
    assert f"venv {Path(program).parent.parent}" in console
    assert words[words.index("--config") + 1] in console


def configured(text: str, folder: Path) -> Settings:
    file = folder / "specmux.yaml"
    file.write_text(text)
    return ConfigSource(file=file).read()


def test_workflow_and_hooks_run_commands_that_there_are() -> None:
    workflow = load(EXAMPLES / "github-workflow.yaml")
    used = [step["with"] for step in workflow["jobs"]["specmux"]["steps"] if step["uses"] == "./specmux"]
    commands = [["specmux", each["command"], *shlex.split(each["arguments"])] for each in used]
    commands += [
        shlex.split(line.partition(" > ")[0])
        for line in load(EXAMPLES / "gitlab-ci.yml")["specmux"]["script"]
    ]
    hooks = {hook["id"]: hook["entry"].split() for hook in load(ROOT / ".pre-commit-hooks.yaml")}
    for repository in load(EXAMPLES / "pre-commit-config.yaml")["repos"]:
        commands += [[*hooks[hook["id"]], *hook.get("args", [])] for hook in repository["hooks"]]
    assert len(commands) == 7
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


BOX = "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\nspec: {size: SIZE}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a}]FIELD}\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One whose checkout has manifests, definitions, and a base branch with the same."""
    for name in ("manifests", "crds"):
        (tmp_path / name).mkdir()
    size = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    }
    names = {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": size}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }
    (tmp_path / "crds/box.yaml").write_text(yaml.safe_dump(crd))
    (tmp_path / "manifests/box.yaml").write_text(BOX.replace("SIZE", "1"))
    (tmp_path / "manifests/pod.yaml").write_text(POD.replace("FIELD", ""))
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["git", "update-ref", "refs/remotes/origin/main", "HEAD"], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "text", "failing"),
    [
        pytest.param("manifests/box.yaml", BOX.replace("SIZE", "1"), None, marks=pytest.mark.long),
        ("manifests/box.yaml", BOX.replace("SIZE", "x"), "validate"),
        ("manifests/pod.yaml", POD.replace("FIELD", ", replicas: 1"), "validate"),
        pytest.param("manifests/pod.yaml", POD.replace("Pod", "Pood"), "validate", marks=pytest.mark.long),
    ],
)
def test_recipes_find_what_is_wrong(
    file: str, text: str, failing: str | None, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines of GitLab's recipe as they stand, and the steps of the action."""
    (repository / file).write_text(text)
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(repository / "home"),
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "RUNNER_TEMP": str(repository / "temp"),
    }
    (repository / "temp/specmux/bin").mkdir(parents=True)
    (repository / "temp/specmux/bin/specmux").symlink_to(Path(sys.executable).with_name("specmux"))

    def ends(line: str, **more: str) -> int:
        words = ["bash", "-e", "-o", "pipefail", "-c", line]
        return subprocess.run(
            words, cwd=repository, env=environment | more, capture_output=True, timeout=100
        ).returncode

    for line in load(EXAMPLES / "gitlab-ci.yml")["specmux"]["script"]:
        assert ends(line) == (shlex.split(line)[1] == failing), line
    (run,) = (step["run"] for step in load(ROOT / "action.yml")["runs"]["steps"] if step.get("name") == "Run")
    for step in load(EXAMPLES / "github-workflow.yaml")["jobs"]["specmux"]["steps"][1:]:
        command, arguments = (
            step["with"]["command"],
            step["with"]["arguments"].replace("${{ github.base_ref }}", "main"),
        )
        assert ends(run, COMMAND=command, ARGUMENTS=arguments) == (command == failing), command
    assert ends(run, COMMAND="serve", ARGUMENTS="") == 2


def test_actions_are_pinned_by_their_hash() -> None:
    files = [ROOT / "action.yml", EXAMPLES / "github-workflow.yaml", *(ROOT / ".github/workflows").iterdir()]
    for file in files:
        for name in re.findall(r"uses: (\S+)", file.read_text()):
            assert name.startswith("./") or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name), (file.name, name)


def test_no_address_is_written_that_cannot_be_followed() -> None:
    """The repository's address is the setting [tool.specmux] home; until it is given, nothing names one."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    own = "github.com/" + "specmux"
    for name in listed.split():
        if Path(name).suffix in {".md", ".yaml", ".yml", ".toml", ".py", ".service", ".txt", ".json"}:
            assert own.encode() not in (ROOT / name).read_bytes(), name


def unknown_options(command: list[str]) -> list[str]:
    """Options that the command of ``specmux COMMAND …`` has not."""
    assert command[0] == "specmux"
    found = main.get_command(click.Context(main), command[1])
    assert found is not None, command
    known = {name for each in found.params for name in each.opts}
    given = [word.partition("=")[0] for word in command[2:] if word.startswith("-")]
    return [name for name in given if name not in known]
