"""Every case of ``golden/diff``, and its table of rules."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson
import pytest

import shared_data
from data.compared import of_documents, of_manifests
from shared_data import DATA, GOLDEN
from specmux_converters.yaml import parse_yaml_stream
from specmux_tools.differences import ChangeSeverity, Comparison, ServedSide, compare
from specmux_tools.differences.changes import Place
from specmux_tools.differences.rules import RULES

FOLDER = GOLDEN / "diff"
CASES = (
    [orjson.loads(line) for line in (FOLDER / "cases.jsonl").read_bytes().splitlines()]
    if FOLDER.is_dir()
    else []
)
BREAKING = 5
ADDED = {
    "conversion-removed",
    "parameter-default-changed",
    "parameter-tightened",
    "response-header-removed",
    "scale-path-changed",
    "security-added",
    "union-added",
    "union-discriminator-changed",
    "union-member-added",
    "union-member-changed",
    "union-member-removed",
    "union-removed",
}
"""Ids that the table does not have."""


def side(form: str, value: Any) -> ServedSide:
    match form:
        case "document":
            return of_documents([value])
        case "set":
            return of_documents(value.values())
        case "crds":
            return of_manifests(value)
        case "release":
            files = sorted(path for path in (DATA / value).rglob("*.json*") if path.name != "INDEX.json")
            return of_documents(shared_data.load(path) for path in files)
        case "crd-release":
            files = sorted((DATA / "crd-pairs" / value).glob("*.yaml*"))
            return of_manifests(item for path in files for item in parse_yaml_stream(shared_data.read(path)))
    raise AssertionError(form)


def as_expected(place: Place) -> str:
    impacts = place.impacts
    entry = {
        "groupVersion": place.group_version,
        "id": place.id,
        "kind": place.kind,
        "path": place.path,
        "what": place.what,
        "severity": place.severity.word,
        "write": impacts.write.word,
        "read": impacts.read.word,
        "stored": impacts.stored.word,
    }
    return orjson.dumps(entry, option=orjson.OPT_SORT_KEYS).decode()


def check_whole(case: Any, found: Comparison) -> None:
    expected = {orjson.dumps(entry, option=orjson.OPT_SORT_KEYS).decode() for entry in case["expect"]}
    assert {as_expected(place) for place in found.places} == expected


def check_release(case: Any, found: Comparison) -> None:
    """Each place of the severities that are listed whole matches the line that says most of its path."""
    counts: Counter[int] = Counter()
    for place in found.places:
        if place.severity.word in case["complete"]:
            fitting = [index for index, line in enumerate(case["expect"]) if fits(place, line)]
            assert fitting, f"not expected: {place}"
            counts[max(fitting, key=lambda index: len(case["expect"][index]["pathEnds"]))] += 1
    assert [counts[index] for index in range(len(case["expect"]))] == [
        line["count"] for line in case["expect"]
    ]
    notices = {
        (place.id, place.group_version, place.kind, place.path)
        for place in found.places
        if place.severity is ChangeSeverity.NOTICE
    }
    for line in case["mustNotice"]:
        assert (line["id"], line["groupVersion"], line["kind"], line["path"]) in notices


def fits(place: Place, line: Any) -> bool:
    return (
        place.id == line["id"]
        and place.severity.word == line["severity"]
        and place.path.endswith(line["pathEnds"])
        and place.group_version in line["groupVersions"]
        and ("kinds" not in line or place.kind in line["kinds"])
        and ("what" not in line or place.what == line["what"])
    )


def places(case: Any) -> list[str]:
    """Of published files that the case compares."""
    folder = {"release": "data", "crd-release": "data/crd-pairs"}.get(case["input"])
    if folder is None:
        return []
    # What a schema says in prose lowers the severity of some changes: of those that lead to 1.35 of none.
    prose = [shared_data.PUBLISHED] if case["input"] == "release" and "1.32" not in case["old"] else []
    return [*(f"{folder}/{case[side]}" for side in ("old", "new")), *prose]


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=shared_data.marks(*places(case)), id=case["case"]) for case in CASES]
)
def test_golden_diff(case: Any, tally: Callable[[str, int], None]) -> None:
    tally("golden diff, cases", 1)
    found = compare(side(case["input"], case["old"]), side(case["input"], case["new"]))
    if case["input"] in ("release", "crd-release"):
        check_release(case, found)
    else:
        check_whole(case, found)
    if case["exit"] is not None:
        is_breaking = any(place.severity is ChangeSeverity.BREAKING for place in found.places)
        assert (BREAKING if is_breaking else 0) == case["exit"]
    tally("golden diff, equal", 1)


def test_golden_diff_rules() -> None:
    rows = list(csv.DictReader((FOLDER / "rules.tsv").read_text().splitlines(), delimiter="\t"))
    ours = {
        rule.id: (
            rule.impacts.write.word,
            rule.impacts.read.word,
            rule.impacts.stored.word,
            "yes" if rule.is_lowered_when_described else "no",
        )
        for rule in RULES.values()
    }
    for row in rows:
        expected = row["write"], row["read"], row["stored"], row["down_when_described"]
        assert ours.pop(row["id"]) == expected
    assert ours.keys() == ADDED
    print(f"diff rules: {len(rows)} of {len(rows)}")
