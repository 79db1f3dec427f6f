"""What Helm says after an installation: how to reach the service, and what is not as it should be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from running.helm_chart import CHART, NAMESPACE, helm, require_helm

require_helm()

SHOWN = """
notes: |
  {{- tpl (.Files.Get "notes.txt") . | nindent 2 }}
"""


def notes(folder: Path, *arguments: str) -> str:
    """As a template of their own: Helm renders the notes only where there is a cluster."""
    chart = shutil.copytree(CHART, folder / "specmux")
    shutil.copy(chart / "templates" / "NOTES.txt", chart / "notes.txt")
    (chart / "templates" / "shown.yaml").write_text(SHOWN)
    result = helm(
        "template", "release", str(chart), f"--namespace={NAMESPACE}", "--show-only=templates/shown.yaml",
        *arguments,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return str(yaml.safe_load(result.stdout)["notes"])


def test_notes_say_how_to_ask(tmp_path: Path) -> None:
    said = notes(tmp_path, "--set=image.repository=r/specmux")
    assert f"https://release-specmux.{NAMESPACE}.svc:443" in said
    assert "Authorization: Bearer" in said
    assert f"{NAMESPACE}:release-specmux-metrics-reader" in said
    assert "WARNING" not in said


@pytest.mark.parametrize(
    ("value", "warning"),
    [
        ("config.auth.mode=none", "config.auth.mode is none"),
        ("serviceAccount.automount=false", "serviceAccount.automount is off"),
        (
            "serviceAccount.automount=false,apiServiceDiscovery.enabled=false",
            "serviceAccount.automount is off",
        ),
        ("image.pullPolicy=Always", "image.repository is the placeholder"),
    ],
)
def test_notes_warn(value: str, warning: str, tmp_path: Path) -> None:
    said = notes(tmp_path, f"--set={value}")
    assert f"WARNING: {warning}" in said
