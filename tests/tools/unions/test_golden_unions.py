"""Algorithm B against structured-merge-diff before its commit 35d4e8c."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson
import yaml

from shared_data import GOLDEN
from specmux_tools.unions import Member, Union, UnionConflict, normalize_apply, normalize_update

CHANGED = re.compile(r"field changed \([^)]*\)")
"""The reference printed an address here, which the recording replaced."""


def declared() -> tuple[Union, ...]:
    schema = yaml.safe_load((GOLDEN / "unions/schema.yaml").read_text())
    return tuple(
        Union(
            members=tuple(Member(each["fieldName"], each["discriminatorValue"]) for each in entry["fields"]),
            discriminator=entry.get("discriminator"),
            deduces=entry.get("deduceInvalidDiscriminator", False),
        )
        for entry in schema["types"][0]["map"]["unions"]
    )


def result(unions: tuple[Union, ...], case: dict[str, Any]) -> tuple[Any, str | None]:
    normalize = normalize_apply if case["mode"] == "apply" else normalize_update
    try:
        return normalize(unions, case["old"], case["new"]), None
    except UnionConflict as conflict:
        return None, CHANGED.sub("field changed (<one field>)", conflict.text)


def test_every_recorded_case_is_ours(tally: Callable[[str, int], None]) -> None:
    unions = declared()
    cases = [orjson.loads(line) for line in (GOLDEN / "unions/algorithm-b.jsonl").read_bytes().splitlines()]
    wrong = [
        f"{case['name']}: {found}"
        for case in cases
        if (found := result(unions, case)) != (case.get("out"), case.get("error"))
    ]
    print(f"unions: {len(cases) - len(wrong)} of {len(cases)}")
    tally("unions, recorded", len(cases))
    tally("unions, equal", len(cases) - len(wrong))
    assert not wrong, "\n".join(wrong)
