"""EXTERNAL DOCS (kubectl 1.36) and ``--max-depth`` (1.37), beside what kubectl's template of 0.37.2 makes of
the same documents. The program that recorded it is ``tests/benchmarks/go/explain``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from data.explained_documents import KIND, bed, kubectl_text, release
from shared_data import PUBLISHED, needs
from specmux_converters.group_versions import GroupVersion, split
from specmux_tools.explanation.text import plaintext

RECORDED = Path(__file__).with_name("kubectl_outputs_1_37.jsonl")
DOCS = (
    {"url": "https://example.org/a"},
    {"description": "More of it. " * 9, "url": "https://example.org"},
    {"description": "two\nlines"},
    {},
)


def documented(key: GroupVersion) -> dict[str, Any]:
    """A document of the reference data in which some schemas have ``externalDocs``."""
    made: dict[str, Any] = orjson.loads(orjson.dumps(release()[key]))
    _document(made["components"]["schemas"].values(), Random(key))
    return made


def _document(schemas: Any, random: Random) -> None:
    for schema in schemas:
        if isinstance(schema, dict):
            if random.random() < 0.05:
                schema["externalDocs"] = random.choice(DOCS)
            _document(schema.get("properties", {}).values(), random)
            _document([schema.get("items"), schema.get("additionalProperties")], random)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@needs(PUBLISHED)
def test_every_recorded_output_is_equal(tally: Callable[[str, int], None]) -> None:
    cases = [orjson.loads(line) for line in RECORDED.read_bytes().splitlines()]
    cases = [case for case in cases if case[0] in release()]
    made = {key: documented(GroupVersion(key)) for key in {case[0] for case in cases}}
    differing = []
    for key, plural, path, recursive, depth, expected in cases:
        group, version = split(GroupVersion(key)) or ("", "")
        text = kubectl_text(made[key], (group, version, plural), path, recursive=recursive, max_depth=depth)
        if digest(text) != expected:
            differing.append((key, plural, path, recursive, depth))
    print(f"explain-1.37: {len(cases) - len(differing)} of {len(cases)}")
    tally("explain equal to kubectl 1.37", len(cases) - len(differing))
    if not cases:
        pytest.skip("no document of a recorded output")
    assert not differing


def test_external_docs_stand_behind_the_description() -> None:
    document = bed(a={"type": "string", "externalDocs": {"description": "more", "url": "https://a.example"}})
    listed = plaintext(document, KIND, ["spec"])
    assert (
        "    <no description>\n\n    EXTERNAL DOCS:\n      more\n      URL: https://a.example\n\n" in listed
    )
    own = plaintext(document, KIND, ["spec", "a"])
    assert "DESCRIPTION:\n    <empty>\n\nEXTERNAL DOCS:\n    more\n    URL: https://a.example\n" in own


def test_levels_of_fields() -> None:
    soil = {"$ref": "#/components/schemas/Soil"}
    document = bed(a={"type": "object", "properties": {"b": soil}})
    texts = [plaintext(document, KIND, [], recursive=True, max_depth=depth) for depth in (1, 2, 3, 0)]
    named = [[name for name in ("spec", " a\t", " b\t", "acidity") if name in text] for text in texts]
    assert [len(found) for found in named] == [1, 2, 3, 4]
