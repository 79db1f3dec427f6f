"""Words, ranks, limits, and the rows that somebody would look for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.explained_documents import bed, release
from data.search_queries import QUERIES
from shared_data import PUBLISHED, marks, needs
from specmux_converters.group_versions import GroupVersion
from specmux_tools.errors import InvalidPath
from specmux_tools.search_index.index import FieldIndex
from specmux_tools.search_index.query import path_text, search
from specmux_tools.search_index.words import mark_words, of_name, query_words


@functools.cache
def small() -> FieldIndex:
    index = FieldIndex()
    fields: dict[str, Any] = {
        "waterLevel": {"type": "integer", "description": "How much rain it gets."},
        "water": {"type": "object", "properties": {"level": {"type": "string"}, "rain": {"type": "string"}}},
        "levels": {"type": "string", "description": "Of water and of soil."},
        "snow": {"type": "string", "description": "How much water falls in winter."},
    }
    index.put(GroupVersion("apis/garden.example.org/v1"), bed(**fields), hash="1")
    return index


def paths(query: str) -> list[str]:
    return [path_text(row) for row in search(small(), query).rows]


def test_ranks() -> None:
    assert paths("water level") == [
        "Bed.spec.waterLevel",
        "Bed.spec.water.level",
        "Bed.spec.levels",
    ]
    assert paths("bed") == ["Bed"]
    assert paths("be")[0] == "Bed"
    assert paths("beds water")[0] == "Bed.spec.water"
    assert paths("much water") == ["Bed.spec.waterLevel", "Bed.spec.snow"]
    assert paths("frost") == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("clusterIPs", {"clusterips", "cluster", "i", "ps"}),
        ("HTTPRoute", {"httproute", "http", "route"}),
        ("imagePullPolicy", {"imagepullpolicy", "image", "pull", "policy"}),
        ("x509", {"x509", "x", "509"}),
        ("$ref", {"$ref", "ref"}),
    ],
)
def test_parts_of_names(name: str, words: set[str]) -> None:
    assert of_name(name) == words


def test_words_that_say_nothing_are_left_out() -> None:
    assert query_words("the number of Pods") == ("number", "pods")
    assert query_words("the") == ("the",)
    assert query_words("Pod.spec.restartPolicy") == ("pod", "spec", "restartpolicy")


@pytest.mark.parametrize("query", ["", "  ...", "a" * 201, "b c d e f g h j k"])
def test_what_cannot_be_asked_is_refused(query: str) -> None:
    with pytest.raises(InvalidPath):
        search(small(), query)


@given(st.text(max_size=30))
def test_any_other_query_is_answered(query: str) -> None:
    try:
        found = search(small(), query, limit=3)
    except InvalidPath:
        return
    assert len(found.rows) == min(3, found.total)


@functools.cache
def whole() -> FieldIndex:
    index = FieldIndex()
    for key, document in release().items():
        index.put(key, document, hash="1")
    return index


def is_found(query: str, wanted: str) -> bool:
    rows = [path_text(row) for row in search(whole(), query).rows[:3]]
    if wanted.startswith("*"):
        return any(row.partition(".")[2] == wanted[2:] for row in rows)
    return wanted in rows


@needs(PUBLISHED, "golden/crd-openapi-v3")
def test_row_that_is_looked_for_is_among_the_first_three(tally: Callable[[str, int], None]) -> None:
    missed = [each for each in QUERIES if not is_found(*each)]
    print(f"search: {len(QUERIES) - len(missed)} of {len(QUERIES)}; missed {missed}")
    tally("searches that found their row", len(QUERIES) - len(missed))
    assert len(QUERIES) == 40
    assert len(missed) <= 2


def test_pages_follow_each_other_and_groups_are_apart() -> None:
    first, second = (search(whole(), "spec", limit=20, offset=offset).rows for offset in (0, 20))
    both = search(whole(), "spec", limit=40).rows
    assert first + second == both
    apps = search(whole(), "selector", group="apps", limit=50).rows
    assert {row.kind.kind.group for row in apps} == {"apps"}
    assert search(whole(), "replicas", group="").rows[0].kind.kind.kind == "ReplicationController"


@needs(PUBLISHED, "golden/crd-openapi-v3")
def test_frequent_words_are_bounded() -> None:
    assert search(whole(), "na").total > 1000
    assert len(search(whole(), "na", limit=200).rows) == 200
    assert search(whole(), "e").total < 100, "a single letter begins nothing"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("replicas", "Deployment.spec.replicas"),
        # Without custom resources kinds whose prose alone has the word are among the hundred.
        pytest.param("config", "ConfigMap", marks=marks("golden/crd-openapi-v3")),
        ("deplo", "Deployment"),
        ("replicaset", "ReplicaSet"),
        ("schedule", "CronJob.spec.schedule"),
    ],
)
def test_what_most_people_mean_comes_first(query: str, first: str) -> None:
    rows = search(whole(), query, limit=100).rows
    assert path_text(rows[0]) == first
    kinds = [row.kind.kind.kind for row in rows if not row.path]
    assert kinds == sorted(kinds, key=lambda kind: kind.endswith("List"))


@pytest.mark.parametrize(
    ("text", "query", "parts"),
    [
        ("spec.replicas", "replicas", [("spec.", False), ("replicas", True), ("", False)]),
        ("restartPolicy", "pol", [("restart", False), ("Pol", True), ("icy", False)]),
        ("unrelated", "related", [("unrelated", False)]),
        ("text", "?", [("text", False)]),
    ],
)
def test_beginnings_of_words_are_marked(text: str, query: str, parts: list[tuple[str, bool]]) -> None:
    assert list(mark_words(text, query)) == parts
