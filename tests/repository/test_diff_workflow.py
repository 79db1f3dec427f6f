"""The workflow that docs/diff.md shows: its commands are run as they stand there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from data.compared import definition

PAGE = Path(__file__).parents[2] / "docs" / "diff.md"
OLD = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
NEW = {"type": "object", "properties": {"a": {"type": "string"}}}

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def steps() -> dict[str, str]:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    workflow: Any = yaml.safe_load(next(block for block in blocks if block.startswith("name:")))
    return {step["name"]: step["run"] for step in workflow["jobs"]["diff"]["steps"] if "run" in step}


@pytest.fixture
def pull_request(tmp_path: Path) -> Path:
    """A checkout whose origin/main has one schema, and whose folder has another."""
    file = tmp_path / "repository" / "crds" / "widgets.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump(definition(OLD)))
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    for command in (
        ("init", "-q"),
        ("add", "."),
        ("commit", "-qm", "one"),
        ("update-ref", "refs/remotes/origin/main", "HEAD"),
    ):
        subprocess.run(["git", *identity, *command], cwd=file.parents[1], check=True, capture_output=True)
    file.write_text(yaml.safe_dump(definition(NEW)))
    return file.parents[1]


def test_the_workflow_annotates_summarises_and_decides(pull_request: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_BASE_REF": "main",
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    codes, outputs = {}, {}
    for name, command in steps().items():
        if name == "Install":
            continue
        done = subprocess.run(
            ["bash", "-e", "-c", command], cwd=pull_request, env=environment, capture_output=True, text=True
        )
        codes[name], outputs[name] = done.returncode, done.stdout
    assert codes == {"Annotate": 0, "Summarise": 0, "Decide": 1}
    assert outputs["Annotate"].startswith("::error file=crds/widgets.yaml,line=")
    assert ",title=field-removed::apis/example.com/v1 Widget spec.b: " in outputs["Annotate"]
    assert "## Breaking" in summary.read_text()
