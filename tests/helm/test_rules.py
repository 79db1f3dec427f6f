"""The alerts under promtool: they are valid, they fire on their fault, and the test of that can fail."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from deadline import DEADLINE
from running.helm_chart import CHART

PROMTOOL = shutil.which("promtool")
RULES = CHART / "files" / "rules.yaml"
CASES = Path(__file__).with_name("rules_test.yaml")

pytestmark = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed: apt-get install prometheus brings it"
)


def promtool(*arguments: object, folder: Path = CASES.parent) -> subprocess.CompletedProcess[str]:
    assert PROMTOOL is not None
    return subprocess.run(
        [PROMTOOL, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def test_rules_are_valid() -> None:
    result = promtool("check", "rules", RULES)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_alert_fires_on_its_fault() -> None:
    result = promtool("test", "rules", CASES)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_alert_has_a_case() -> None:
    alerts = {
        rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    }
    assert {alert for alert in alerts if alert not in CASES.read_text()} == set()


@pytest.mark.long
@pytest.mark.parametrize(
    ("right", "wrong"),
    [("specmux_backend_up) == 0", "specmux_backend_up) == 1"), ("> 0.01", "> 0.5"), ("> 3600", "> 36000")],
)
def test_a_wrong_rule_is_noticed(right: str, wrong: str, tmp_path: Path) -> None:
    text = RULES.read_text()
    assert right in text
    (tmp_path / "rules.yaml").write_text(text.replace(right, wrong))
    cases = CASES.read_text().replace("../../helm/specmux/files/rules.yaml", "rules.yaml")
    (tmp_path / "cases.yaml").write_text(cases)
    assert promtool("test", "rules", "cases.yaml", folder=tmp_path).returncode == 1
