"""docs/metrics.md against a running service: nothing undocumented, nothing that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

from running.exposition import families

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def documented() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", PAGE.read_text(), re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def test_page_lists_every_metric_with_its_labels() -> None:
    exposed: dict[str, set[str]] = {}
    for family in families():
        if family.name.startswith("process_") or family.name.endswith("_created"):
            continue
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = {label for sample in family.samples for label in sample.labels}
        exposed.setdefault(name, set()).update(labels - {"le"})
    page = documented()
    assert exposed.keys() == page.keys()
    assert {name: labels for name, labels in exposed.items() if labels} == {
        name: labels for name, labels in page.items() if labels
    }
