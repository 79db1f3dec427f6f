"""Metrics and labels that the chart's alerts and dashboard name are in /metrics of a running service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from running.exposition import families

FILES = Path(__file__).resolve().parents[2] / "helm" / "specmux" / "files"

WORDS = {
    "abs", "absent", "and", "avg", "avg_over_time", "bottomk", "by", "changes", "count", "histogram_quantile",
    "increase", "label_values", "max", "min", "on", "or", "rate", "sum", "topk", "vector",
}  # fmt: skip
"""Of PromQL; a name that is none of these is a metric."""

SAMPLES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
"""Type -> what is added to a metric's name in those of its samples."""

OF_THE_TARGET = {"namespace", "job", "instance", "pod", "le"}
"""Labels that Prometheus adds, and a histogram's."""

OF_THE_PROCESS = {"process_resident_memory_bytes"}
"""prometheus-client's own, which only a whole process has (Linux)."""


def alert_expressions() -> list[str]:
    groups = yaml.safe_load((FILES / "rules.yaml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


def dashboard_expressions() -> list[str]:
    dashboard = json.loads((FILES / "dashboard.json").read_text())
    queries = [item["definition"] for item in dashboard["templating"]["list"] if item["type"] == "query"]
    return queries + [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]


def documented_questions() -> list[str]:
    page = (FILES.parents[2] / "docs" / "metrics.md").read_text()
    section = page[page.index("## Questions") : page.index("## What operators watch")]
    return re.findall(r"\| `([^`]+)` \|", section)


def metrics(expression: str) -> set[str]:
    plain = re.sub(r'"[^"]*"', "", expression)
    plain = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|on)\s*\([^)]*\)", " ", plain)
    plain = re.sub(r"label_values\(([^,]+),[^)]*\)", r"\1", plain)
    return set(re.findall(r"[a-zA-Z_:][\w:]*", plain)) - WORDS


def labels(expression: str) -> set[str]:
    """Labels that series are grouped or picked by."""
    grouped = " ".join(re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", expression))
    picked = " ".join(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)\s*\"", expression))
    return set(re.findall(r"\w+", f"{grouped} {picked}")) - OF_THE_TARGET


def exposed() -> dict[str, set[str]]:
    """Sample name -> labels. Where there are no samples, the labels are those of docs/metrics.md."""
    found: dict[str, set[str]] = {}
    for family in families():
        for name in SAMPLES.get(family.type, ("",)):
            found[family.name + name] = documented(family.name + name.removesuffix("_bucket"))
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def documented(name: str) -> set[str]:
    page = (FILES.parents[2] / "docs" / "metrics.md").read_text()
    row = re.search(rf"^\| `{name}` \|([^|]*)\|", page, re.MULTILINE)
    return set(re.findall(r"`(\w+)`", row[1])) if row else set()


@pytest.fixture(scope="module")
def samples() -> dict[str, set[str]]:
    return exposed()


@pytest.mark.parametrize("source", [alert_expressions, dashboard_expressions, documented_questions])
def test_every_metric_exists_with_its_labels(source: Any, samples: dict[str, set[str]]) -> None:
    named = 0
    for expression in source():
        wanted = metrics(expression)
        assert wanted, expression
        assert wanted - samples.keys() - OF_THE_PROCESS == set(), expression
        known = {label for name in wanted for label in samples.get(name, ())}
        assert labels(expression) <= known, expression
        named += len(wanted)
    assert named > 10


def test_every_cause_and_phase_that_an_alert_picks_is_one() -> None:
    from specmux_aggregator.model.failure import Cause

    expressions = " ".join(alert_expressions())
    causes = {cause for text in re.findall(r'cause=~"([^"]*)"', expressions) for cause in text.split("|")}
    assert causes
    assert causes <= {cause.value for cause in Cause}
    phases = {phase for text in re.findall(r'phase=~"([^"]*)"', expressions) for phase in text.split("|")}
    page = (FILES.parents[2] / "docs" / "metrics.md").read_text()
    assert phases
    assert all(f"`{phase}`" in page for phase in phases)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ('sum by (job) (rate(a_total{b="c d"}[5m])) > 0', {"a_total"}),
        ("a and on (job, instance) b", {"a", "b"}),
        ('label_values(a{b=~"$b"}, job)', {"a"}),
        ("histogram_quantile(0.99, sum by (le) (rate(a_bucket[$__rate_interval])))", {"a_bucket"}),
    ],
)
def test_metrics_of_an_expression_are_found(expression: str, wanted: set[str]) -> None:
    assert metrics(expression) == wanted


def test_a_metric_that_does_not_exist_is_noticed(samples: dict[str, set[str]]) -> None:
    assert metrics("rate(specmux_backend_ups[5m])") - samples.keys() == {"specmux_backend_ups"}


def test_panels_have_a_place_and_a_meaning() -> None:
    def cells() -> Iterator[tuple[int, int]]:
        for panel in json.loads((FILES / "dashboard.json").read_text())["panels"]:
            place = panel["gridPos"]
            assert panel["title"]
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    yield x, y

    taken = list(cells())
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24


def test_every_alert_has_a_page_to_go_to() -> None:
    groups = yaml.safe_load((FILES / "rules.yaml").read_text())["groups"]
    page = (FILES.parents[2] / "docs" / "alerts.md").read_text()
    for rule in (rule for group in groups for rule in group["rules"]):
        assert f"\n## {rule['alert']}\n" in page
