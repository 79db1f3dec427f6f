"""Paths of fields as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_tools.errors import InvalidPath
from specmux_tools.explanation.field_path import Step, format_path, parse

READ = {
    "deploy": ["deploy"],
    "deploy.spec.replicas": ["deploy", "spec", "replicas"],
    "deploy.spec.": ["deploy", "spec"],
    "$.spec.containers[0].image": ["spec", "containers", "image"],
    "$": [],
    "": [],
    ".spec": ["spec"],
    "spec.containers[].ports[*].name": ["spec", "containers", "ports", "name"],
    'metadata.labels["a.b/c"]': ["metadata", "labels", "a.b/c"],
    "metadata.labels['it\"s']": ["metadata", "labels", 'it"s'],
    r"metadata.a\.b": ["metadata", "a.b"],
    "$ref": ["$ref"],
    "x[0][1]": ["x"],
}


@pytest.mark.parametrize("text", READ)
def test_path_is_read(text: str) -> None:
    assert [step.name for step in parse(text)] == READ[text]


@pytest.mark.parametrize("text", ["a..b", "a[", "a[b]", "a['b", "a]", "..", "a[-1]", "a" * 5000, ".a" * 65])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidPath):
        parse(text)


def test_refusal_says_where() -> None:
    with pytest.raises(InvalidPath, match=r"unexpected '.' at 5"):
        parse("spec.[x]")


def test_keys_of_maps_are_told_from_fields() -> None:
    assert parse('labels["app"].x') == (Step("labels"), Step("app", is_quoted=True), Step("x"))


# A name with both quotes can be written in neither.
@given(st.lists(st.text(st.characters(exclude_characters="'", codec="utf-8"), max_size=8), max_size=6))
def test_what_is_written_is_read(names: list[str]) -> None:
    if not any("\n" in name for name in names) and names[:1] != ["$"]:
        assert tuple(step.name for step in parse(format_path(tuple(names)))) == tuple(names)
