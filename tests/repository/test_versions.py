"""One version: the package's, which the chart and the release workflow have too."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import yaml

from specmux_aggregator.version import VERSION

ROOT = Path(__file__).resolve().parents[2]


def test_package_and_chart_have_the_version_that_is_written_once() -> None:
    chart = yaml.safe_load((ROOT / "helm/specmux/Chart.yaml").read_text())
    assert (version("specmux"), chart["version"], str(chart["appVersion"])) == (VERSION, VERSION, VERSION)


def test_release_runs_actions_by_the_digest_of_what_was_read() -> None:
    used = re.findall(r"uses: (\S+)(.*)", (ROOT / ".github/workflows/release.yaml").read_text())
    assert len(used) > 9
    assert [name for name, _ in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []
    assert [name for name, tag in used if not re.fullmatch(r"  # v\d+\.\d+\.\d+", tag)] == []


def test_release_publishes_by_trust_and_not_by_a_password() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yaml").read_text())
    assert workflow["jobs"]["pypi"]["permissions"]["id-token"] == "write"
    assert "password" not in str(workflow["jobs"]["pypi"])
    assert {"build", "pypi", "oci"} == workflow["jobs"].keys()


def test_ci_runs_the_contract_on_every_python_and_builds_the_image() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    stated = re.findall(r"Python :: (3\.\d+)\"", (ROOT / "pyproject.toml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["jobs"]["ci"]["strategy"]["matrix"]["python"] == stated
    assert ".ci/run" in [step.get("run") for step in workflow["jobs"]["ci"]["steps"]]
    assert any("docker build" in step.get("run", "") for step in workflow["jobs"]["image"]["steps"])
    run = (ROOT / ".ci/run").read_text()
    assert [part for part in ("make lint", "make helm", "make sbom", "make test") if part not in run] == []
