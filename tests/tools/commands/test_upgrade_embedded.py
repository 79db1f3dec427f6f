"""``specmux upgrade`` looks into what the next helm upgrade and kubectl apply start from, and ahead."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from converters.crd.widgets import of_spec, widget
from shared_data import SHARED
from specmux_aggregator.cli import main
from specmux_tools.inputs import upgraded_objects

GONE = "apiVersion: policy/v1beta1\nkind: PodSecurityPolicy\nmetadata: {name: p}\n"
HERE = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n"


def release(manifest: str, *, status: str = "deployed", packed: Any = gzip.compress, **more: Any) -> str:
    value = {"name": "shop", "info": {"status": status}, "manifest": manifest, **more}
    return base64.b64encode(packed(json.dumps(value).encode())).decode()


def secret(data: str, *, status: str = "deployed") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "helm.sh/release.v1",
        "metadata": {
            "name": "sh.helm.release.v1.shop.v2",
            "namespace": "web",
            "labels": {"owner": "helm", "name": "shop", "version": "2", "status": status},
        },
        "data": {"release": base64.b64encode(data.encode()).decode()},
    }


def config_map(data: str) -> dict[str, Any]:
    stored = {**secret(""), "kind": "ConfigMap", "data": {"release": data}}
    del stored["type"]
    return stored


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, most in (("old", 10), ("new", 5)):
        size = {"type": "integer", "maximum": most}
        colour = {"type": "string", "enum": ["red", "blue"][: most // 5]}
        of = {"type": "object", "properties": {"size": size, "colour": colour}}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(widget(of_spec(of))))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*objects: Any, words: tuple[str, ...] = ()) -> Result:
    Path("objects.yaml").write_text("---\n".join(map(yaml.safe_dump, objects)))
    arguments = ["upgrade", "--from", "old.yaml", "--to", "new.yaml", "objects.yaml", *words]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.mark.parametrize(
    "stored",
    [
        secret(release(GONE)),
        secret(release(f"---\n# Source: a\n{HERE}---\n{GONE}")),
        secret(release(HERE, hooks=[{"name": "h", "manifest": GONE}])),
        secret(release(GONE, packed=bytes)),
        config_map(release(GONE)),
        {"apiVersion": "v1", "kind": "SecretList", "items": [secret(release(GONE))]},
        {"apiVersion": "v1", "kind": "List", "items": [secret(release(GONE))]},
    ],
)
def test_removed_kinds_in_a_release_of_helm_are_not_ready(stored: dict[str, Any], folder: Path) -> None:
    result = run(stored, words=("--allow-unchecked",))
    assert result.exit_code == 1
    (line,) = [each for each in result.stdout.splitlines() if "PodSecurityPolicy" in each]
    assert "policy/v1beta1 PodSecurityPolicy is not served any more" in line
    assert "(in Helm's release web/shop, revision 2, of the next helm upgrade)" in line


@pytest.mark.parametrize(
    "stored",
    [
        secret(release(GONE), status="superseded"),
        secret(release(GONE, status="superseded"), status=""),
        secret(release(GONE, status="uninstalled"), status=""),
        {**secret(release(GONE)), "type": "Opaque"},
    ],
)
def test_no_upgrade_starts_from_past_releases(stored: dict[str, Any], folder: Path) -> None:
    assert run(stored, words=("--allow-unchecked",)).exit_code == 0


@pytest.mark.parametrize("data", ["%%%", "aGVsbG8=", release(GONE)[:-40], release(GONE + " " * 5000)])
def test_a_release_that_cannot_be_read_is_not_checked(
    data: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgraded_objects, "RELEASE_MAX", 1000)
    result = run(secret(data))
    assert result.exit_code == 5
    assert "cannot be read: " in result.stdout
    assert "2 not-checked" in result.stdout


def applied(stored: str, said: str | None) -> dict[str, Any]:
    value: dict[str, Any] = yaml.safe_load(stored)
    if said is not None:
        value["metadata"]["annotations"] = {upgraded_objects.LAST_APPLIED: said}
    return value


def test_what_was_applied_last_is_judged_where_it_is_of_another_version(folder: Path) -> None:
    for said, code in (
        (json.dumps(yaml.safe_load(GONE)), 1),
        ("{", 5),
        (json.dumps(yaml.safe_load(HERE)), 0),
        (None, 0),
    ):
        result = run(applied(HERE, said))
        assert result.exit_code == code, result.output
        assert ("in its last-applied-configuration" in result.stdout) is bool(code)


@pytest.mark.parametrize(
    ("spec", "outcome"),
    [
        ({"size": 20}, "refused-before"),
        ({"colour": "green"}, "refused-before"),
        ({"size": 7}, "not-ready"),
        ({"size": 20, "colour": "blue"}, "not-ready"),
        ({"size": 3}, "ready"),
    ],
)
def test_what_is_refused_with_another_bound_was_refused_before(
    spec: dict[str, Any], outcome: str, folder: Path
) -> None:
    result = run({**yaml.safe_load(HERE), "spec": spec})
    assert result.stdout.endswith(f"Summary: 1 object: 1 {outcome}\n")
    assert result.exit_code == (outcome == "not-ready")


def test_the_summary_can_be_left_out(folder: Path) -> None:
    assert "Summary: " in run(yaml.safe_load(HERE), words=("--summary",)).stdout
    assert "Summary: " not in run(yaml.safe_load(HERE), words=("--no-summary",)).stdout


def test_what_goes_with_a_later_release_is_said_and_ready(folder: Path) -> None:
    documents = str(SHARED / "data/k8s-pairs/1.30/v3")
    schema = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1beta3", "kind": "FlowSchema"}
    Path("flow.yaml").write_text(yaml.safe_dump({**schema, "metadata": {"name": "a"}}))
    words = ["upgrade", "--from", documents, "--to", documents, "flow.yaml"]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 0
    assert "note: " in result.stdout
    assert "Kubernetes 1.32 removes flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema: " in result.stdout
    assert "1 ready" in result.stdout
