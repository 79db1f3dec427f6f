"""Names by kind, labels and annotations of templates, beside what kube-apiserver 1.34.4 and 1.37.2 said.

``tests/cluster/record_names.py`` recorded it.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from shared_data import documents, load
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Check, Validator
from specmux_tools.validation.metadata.names import NameRule, name_faults, name_rule

RECORDED = Path(__file__).parent / "recorded" / "names.jsonl.gz"


def is_of_names(text: str) -> bool:
    place = text.partition(":")[0]
    ours = ("template.labels", "template.annotations", "finalizers[0]")
    return place == "metadata.name" or place.endswith(ours)


def test_recorded_objects(tally: Callable[[str, int], None]) -> None:
    rows: list[dict[str, Any]] = [*map(orjson.loads, gzip.decompress(RECORDED.read_bytes()).splitlines())]
    described = DocumentSet({key: load(path) for key, path in documents("1.35").items()})
    validators = {release: Validator(described, release=release) for release in ("1.34", "1.37")}
    seen: Counter[tuple[str, bool]] = Counter()
    for row in rows:
        report = validators[row["release"]].validate(orjson.dumps(row["object"]))
        found = {each.message for each in report.violations if each.check is Check.METADATA}
        expected = {text for text in row["faults"] if is_of_names(text)}
        # Of an older release the verdict is ours, and the words are the newest's.
        assert bool(found) == bool(expected), row["object"]
        assert row["release"] == "1.34" or found == expected, row["object"]
        seen[row["object"]["kind"], not expected] += 1
    tally("names recorded from kube-apiserver", len(rows))
    kinds = {kind for kind, _ in seen}
    assert len(kinds) >= 30
    assert all(seen[kind, passes] >= 2 for kind in kinds for passes in (True, False))


@pytest.mark.parametrize(
    ("group", "kind", "minor", "rule"),
    [
        ("", "Service", 35, NameRule.LABEL_1035),
        ("", "Service", 36, NameRule.LABEL),
        ("apps", "StatefulSet", 37, NameRule.LABEL),
        ("apps", "Deployment", 37, NameRule.SUBDOMAIN),
        ("policy", "PodDisruptionBudget", 37, NameRule.PATH_SEGMENT),
        ("networking.k8s.io", "IPAddress", 37, NameRule.PATH_SEGMENT),
        ("example.com", "Any", 37, NameRule.PATH_SEGMENT),
    ],
)
def test_rules(group: str, kind: str, minor: int, rule: NameRule) -> None:
    assert name_rule(group, kind, minor) is rule


def test_a_prefix_may_end_with_a_dash() -> None:
    assert not name_faults(NameRule.LABEL, "a-", is_prefix=True)
    assert name_faults(NameRule.LABEL, "a-")
