from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest

from shared_data import GOLDEN, read
from specmux_tools.validation.schema.scalars import RFC3339_MICRO, base64_fault, quantity_fault, time_fault

READERS: dict[str, Callable[[str], str | None]] = {
    "quantity": quantity_fault,
    "bytes": base64_fault,
    "time": time_fault,
    "microtime": lambda text: time_fault(text, RFC3339_MICRO),
}


@pytest.mark.parametrize("marked", [pytest.param(None)])
def test_every_recorded_verdict(marked: None, tally: Callable[[str, int], None]) -> None:
    cases = [orjson.loads(line) for line in read(GOLDEN / "json-schema/scalars.jsonl.gz").splitlines()]
    wrong = [case for case in cases if (READERS[case["type"]](case["text"]) is None) != case["accept"]]
    tally("scalars.jsonl, compared", len(cases))
    assert not wrong


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("2020-01-01T00:00:00Z", None),
        ("2020-02-30T00:00:00Z", 'parsing time "2020-02-30T00:00:00Z": day out of range'),
        ("2020-13-01T00:00:00Z", 'parsing time "2020-13-01T00:00:00Z": month out of range'),
        ("2020-01-01T25:00:00Z", 'parsing time "2020-01-01T25:00:00Z": hour out of range'),
        ("2020-01-01T00:00:00Zx", 'parsing time "2020-01-01T00:00:00Zx": extra text: "x"'),
        (
            "2020-01-01",
            'parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"',
        ),
    ],
)
def test_times(text: str, fault: str | None) -> None:
    assert time_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [("aGk=", None), ("aG\nk=", None), ("%%%", 0), ("aGk", 0), ("aGk==", 4), ("a===", 1), ("aGk=x", 4)],
)
def test_base64(text: str, fault: int | None) -> None:
    assert base64_fault(text) == (None if fault is None else f"illegal base64 data at input byte {fault}")
