"""The plain text equals what kubectl 1.32 printed, for every resource and random paths.

``record_kubectl.py`` wrote what it printed: of published documents, and of the built-in ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from data.built_in_swagger import documents_of
from data.explained_documents import kubectl_text, release
from shared_data import PUBLISHED, needs
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, split
from specmux_tools.errors import SchemasError

RECORDED = Path(__file__).with_name("kubectl_outputs.jsonl")
BUILT_IN = RECORDED.with_name("kubectl_outputs_built_in.jsonl")

Documents = Mapping[GroupVersion, Document]


def printed(documents: Documents, key: str, plural: str, path: list[str], recursive: bool) -> str:
    """The digest of ours."""
    group, version = split(GroupVersion(key)) or ("", "")
    try:
        text = kubectl_text(documents[GroupVersion(key)], (group, version, plural), path, recursive=recursive)
    except SchemasError:
        return "refused"
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def differing(documents: Documents, cases: list[Any]) -> list[Any]:
    return [case[:4] for case in cases if printed(documents, *case[:4]) != case[4]]


def recorded(path: Path) -> list[Any]:
    cases = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert sum(case[4] != "refused" for case in cases) > len(cases) / 2
    return cases


@needs(PUBLISHED)
def test_every_recorded_output_is_equal(tally: Callable[[str, int], None]) -> None:
    cases = [case for case in recorded(RECORDED) if case[0] in release()]
    unlike = differing(release(), cases)
    print(f"explain: {len(cases) - len(unlike)} of {len(cases)}")
    tally("explain equal to kubectl", len(cases) - len(unlike))
    if not cases:
        pytest.skip("no document of a recorded output")
    assert not unlike


def test_every_recorded_output_of_built_in_documents_is_equal(tally: Callable[[str, int], None]) -> None:
    cases = recorded(BUILT_IN)
    unlike = differing(documents_of("1.35"), cases)
    tally("explain of built-in documents equal to kubectl", len(cases) - len(unlike))
    assert len(cases) > 200
    assert not unlike
