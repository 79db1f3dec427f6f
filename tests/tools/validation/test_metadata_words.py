"""What apimachinery 0.34.4, 0.35.0, 0.36.0 and 0.37.2 say of metadata, recorded with
``tests/benchmarks/go/object_metadata``."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from specmux_tools.validation.metadata.object_metadata import metadata_errors

RECORDED = Path(__file__).parent / "recorded" / "metadata.jsonl.gz"
AS_BEFORE = {"1.34": ("1.34",), "1.35": ("1.35", "1.34"), "1.36": ("1.35", "1.34"),
             "1.37": ("1.37", "1.35", "1.34")}  # fmt: skip
"""Where the answer of a release is recorded: 0.36.0 said what 0.35.0 did."""


@pytest.mark.parametrize("release", AS_BEFORE)
def test_every_recorded_answer_is_ours(release: str, tally: Callable[[str, int], None]) -> None:
    rows = [orjson.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    wrong = []
    for row in rows:
        wanted = next(row[name] for name in AS_BEFORE[release] if name in row)
        errors = list(metadata_errors(row["metadata"]))
        # Go goes through the map of labels in no order. Of older releases only the verdict is ours.
        is_equal = sorted(each.text for each in errors) == sorted(wanted)
        if bool(errors) != bool(wanted) or (release == "1.37" and not is_equal):
            wrong.append(row["metadata"])
    assert len(rows) > 150
    assert sum("1.35" in row for row in rows) > 10 < sum("1.37" in row for row in rows)
    assert wrong == []
    tally(f"metadata recorded from apimachinery, as {release}", len(rows))
