"""The plain text equals what kubectl 1.32 printed, for every resource and random paths.

``record_kubectl.py`` wrote what it printed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from data.explained_documents import release
from shared_data import PUBLISHED, needs
from specmux_converters.group_versions import GroupVersion, split
from specmux_tools.errors import SchemasError
from specmux_tools.explanation.plaintext import plaintext

RECORDED = Path(__file__).with_name("kubectl_outputs.jsonl")


def printed(key: str, plural: str, path: list[str], recursive: bool) -> str:
    """The digest of ours."""
    group, version = split(GroupVersion(key)) or ("", "")
    try:
        text = plaintext(release()[GroupVersion(key)], (group, version, plural), path, recursive=recursive)
    except SchemasError:
        return "refused"
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@needs(PUBLISHED)
def test_every_recorded_output_is_equal(tally: Callable[[str, int], None]) -> None:
    cases = [orjson.loads(line) for line in RECORDED.read_bytes().splitlines()]
    cases = [case for case in cases if case[0] in release()]
    differing = [case[:4] for case in cases if printed(*case[:4]) != case[4]]
    print(f"explain: {len(cases) - len(differing)} of {len(cases)}")
    tally("explain equal to kubectl", len(cases) - len(differing))
    if not cases:
        pytest.skip("no document of a recorded output")
    assert not differing
    assert sum(case[4] != "refused" for case in cases) > len(cases) / 2
