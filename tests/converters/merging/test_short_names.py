"""Names of schemas without package paths: unique, independent of order, and followed by every reference."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from shared_data import documents, load
from specmux_converters.merging import merge
from specmux_converters.references import name_in, references, rewrite
from specmux_converters.short_names import short_names, with_short_names


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["io.k8s.api.apps.v1.Deployment"], ["Deployment"]),
        (
            ["io.k8s.api.core.v1.Event", "io.k8s.api.events.v1.Event"],
            ["core.v1.Event", "events.v1.Event"],
        ),
        (["a.core.v1.Event", "b.core.v1.Event"], ["a.core.v1.Event", "b.core.v1.Event"]),
        (["Event", "a.v1.Event"], ["Event", "a.v1.Event"]),
        (["v1.Event", "a.v1.Event", "b.a.v1.Event"], ["v1.Event", "a.v1.Event", "b.a.v1.Event"]),
        ([], []),
    ],
)
def test_the_last_part_is_the_name_unless_two_have_it(names: list[str], expected: list[str]) -> None:
    assert [short_names(names)[name] for name in names] == expected


NAMES = st.lists(
    st.lists(st.sampled_from(["a", "B", "v1", ""]), min_size=1, max_size=5).map(".".join), unique=True
)


@given(NAMES, st.sampled_from([".".join, "".join, lambda parts: "".join(parts).lower()]))
def test_names_are_as_many_as_before_whatever_the_order(names: list[str], joined: Any) -> None:
    found = short_names(names, joined)
    assert found.keys() == set(names)
    assert len(set(found.values())) == len(names)
    assert short_names(reversed(names), joined) == found


def test_references_follow_and_collisions_are_told() -> None:
    refs = [
        "#/components/schemas/a.v1.X",
        "#/components/schemas/b.v1.X/properties/y",
        "#/components/responses/a.v1.X",
    ]
    document = {
        "openapi": "3.0.0",
        "paths": {"/x": {"get": {"responses": {"200": {"$ref": refs[2]}}}}},
        "components": {
            "responses": {"a.v1.X": {"description": "d"}},
            "schemas": {
                "a.v1.X": {},
                "b.v1.X": {},
                "a~/b.v1.Y": {"allOf": [{"$ref": ref} for ref in refs[:2]]},
            },
        },
    }
    short = with_short_names(document)
    assert list(short.document["components"]["schemas"]) == ["Y", "a.v1.X", "b.v1.X"]
    assert references(short.document, "document") == set(refs)
    (collision,) = short.collisions
    assert (collision.word, dict(collision.names)) == ("X", {"a.v1.X": "a.v1.X", "b.v1.X": "b.v1.X"})
    assert with_short_names({"openapi": "3.0.0"}).document == {"openapi": "3.0.0"}


def test_a_release_means_the_same_under_short_names() -> None:
    merged = merge({key: load(path) for key, path in documents("1.35").items()}).document
    short = with_short_names(merged).document
    schemas = merged["components"]["schemas"]
    names = short_names(schemas)
    back = {new: old for old, new in names.items()}
    assert len(short["components"]["schemas"]) == len(schemas) > 700
    for name, node in short["components"]["schemas"].items():
        restored = rewrite(
            node, "schema", lambda ref: f"#/components/schemas/{back[name_in(ref, 'schemas') or '']}"
        )
        assert restored == schemas[back[name]]
    assert names["io.k8s.api.apps.v1.Deployment"] == "Deployment"
