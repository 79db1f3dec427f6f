from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from specmux_aggregator.built_in_releases import built_in_releases
from specmux_aggregator.cli import main
from specmux_aggregator.errors import NoSource
from specmux_converters.group_versions import GroupVersion
from specmux_tools.sources.options import SourceOptions, release_of, source_word
from specmux_tools.sources.releases import ReleaseSource

APPS = GroupVersion("apis/apps/v1")
DEFAULT = "no cluster: Kubernetes 1.37's own kinds are used (--release chooses another)\n"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replica: 2
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: i}]}
"""
FLOW = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1beta3
kind: FlowSchema
metadata: {name: f}
spec: {priorityLevelConfiguration: {name: x}}
"""


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "SPECMUX_SERVER"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=stdin)


def test_source_loads_what_is_asked_for() -> None:
    source = ReleaseSource("1.36")
    loaded = source.load([APPS]).documents.documents

    assert list(loaded) == [APPS]
    assert loaded[APPS] == built_in_releases().document("1.36", APPS)
    assert source.load([APPS], schemas_only=True).documents.documents[APPS] is loaded[APPS]
    assert ReleaseSource("1.36").load([APPS], schemas_only=True).documents.documents[APPS]["paths"] == {}
    assert source.state() == ReleaseSource("1.36").state() != ReleaseSource("1.35").state()
    assert source.hashes().keys() == set(source.group_versions()) == source.load().documents.documents.keys()
    assert source.refresh() is source


def test_source_lists_resources_as_an_apiserver_does() -> None:
    resources = ReleaseSource("1.37").resources()
    deployments = next(each for each in resources[APPS] if each.name == "deployments")

    assert list(resources)[:3] == ["apis/apiregistration.k8s.io/v1", "api/v1", "apis/apps/v1"]
    assert (deployments.short_names, deployments.is_namespaced) == (("deploy",), True)
    assert [each.name for each in deployments.subresources] == ["scale", "status"]


def test_words_name_releases(tmp_path: Path) -> None:
    assert SourceOptions().at("kubernetes:1.36").kubernetes == "1.36"
    assert SourceOptions(kubernetes="1.36").at("context:a").kubernetes is None
    assert release_of("kubernetes:v1.30") == "1.30"
    assert (source_word("1.37"), source_word("v1.37")) == ("kubernetes:1.37", "kubernetes:v1.37")
    assert source_word("folder") == "folder"
    (tmp_path / "1.37").mkdir()
    assert source_word("1.37") == "1.37"
    with pytest.raises(NoSource, match=r"kubernetes:1\.29: no release .* 1\.30 to 1\.37"):
        release_of("kubernetes:1.29")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (["explain", "deploy.spec.replicas"], 0),
        (["search", "replicas"], 0),
        (["get", "apps/v1"], 0),
        (["validate", "-"], 1),
    ],
)
def test_the_newest_release_is_the_default_and_said_once(line: list[str], code: int) -> None:
    result = run(*line, stdin=DEPLOYMENT)

    assert result.exit_code == code
    assert result.stderr.count(DEFAULT) == 1
    assert DEFAULT not in run("-q", *line, stdin=DEPLOYMENT).stderr


@pytest.mark.parametrize("line", [["explain", "deploy", "--release", "1.33"], ["merge", "kubernetes:1.33"]])
def test_a_named_release_is_not_announced(line: list[str]) -> None:
    result = run(*line)

    assert (result.exit_code, "no cluster" in result.stderr) == (0, False)


@pytest.mark.parametrize("name", ["KUBECONFIG", "HOME"])
def test_a_kubeconfig_that_cannot_be_used_is_an_error(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("clusters: []\n" if name == "HOME" else "")
    if name == "KUBECONFIG":
        monkeypatch.setenv(name, str(tmp_path / "missing"))
    result = run("explain", "deploy")

    assert (result.exit_code, "own kinds" in result.output) == (3, False)


def test_a_release_is_taken_instead_of_the_current_context(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("clusters: []\n")

    assert run("explain", "deploy", "--release", "1.36").exit_code == 0
    assert run("validate", "-", "--release", "1.31", stdin=FLOW).exit_code == 0
    assert run("validate", "-", "--release", "1.32", stdin=FLOW).exit_code == 1


def test_manifests_are_judged_as_by_the_release() -> None:
    result = run("validate", "-", stdin=DEPLOYMENT)

    assert result.stdout == (
        'stdin:5:3: error: Deployment web: unknown field "spec.replica" (did you mean "replicas"?)\n'
    )


def test_an_upgrade_needs_no_cluster(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(FLOW)
    default = run("upgrade", "--to", "1.32", "flow.yaml")
    named = run("upgrade", "--from", "1.30", "--to", "kubernetes:1.32", "flow.yaml")

    assert "no cluster: Kubernetes 1.31's own kinds are used (--from chooses another)" in default.stderr
    assert default.exit_code == named.exit_code == 1
    assert "Kubernetes 1.32 removed flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema" in default.stdout
    assert named.stdout == default.stdout
    assert run("upgrade", "--to", "1.31", "flow.yaml").exit_code == 0


@pytest.mark.long
def test_releases_are_compared_converted_and_checked(tmp_path: Path) -> None:
    compared = run("diff", "kubernetes:1.34", "kubernetes:1.37", "-o", "json")
    folder = tmp_path / "documents"
    converted = run("convert", "kubernetes:1.36", "--split", str(folder))
    checked = run("check", "kubernetes:1.36", "-o", "json")

    assert compared.exit_code == 1
    assert json.loads(compared.stdout)["summary"]["breaking"] > 0
    assert converted.exit_code == 0
    written = orjson.loads((folder / "apis/apps/v1.json").read_bytes())
    assert written == built_in_releases().document("1.36", APPS)
    assert checked.exit_code == 0


def test_schemas_are_written_of_a_release(tmp_path: Path) -> None:
    written = run("schemas", "--release", "1.36", "out", "--layout", "standalone")
    patch = run("schemas", "--release", "v1.36.0", "patch", "--layout", "standalone")

    assert (written.exit_code, patch.exit_code) == (0, 0)
    name = "deployment-apps-v1.json"
    assert (tmp_path / "out/master-standalone" / name).read_bytes() == (
        tmp_path / "patch/v1.36.0-standalone" / name
    ).read_bytes()


def test_kinds_of_others_say_where_their_definition_can_come_from() -> None:
    result = run("explain", "gadget")

    assert result.exit_code == 1
    assert "--directory DIR, --file FILE or --server URL" in result.stderr


def test_tools_of_agents_answer_of_a_release() -> None:
    from specmux_tools.mcp.library import Library

    library = Library(ReleaseSource("1.36"), is_ordered=True)
    verdict: dict[str, Any] = library.validate(DEPLOYMENT)

    assert "apps/v1 Deployment deployments deploy" in "\n".join(library.list_kinds("deployment"))
    assert "replicas" in "\n".join(library.explain("deploy.spec"))
    assert not verdict["valid"]
