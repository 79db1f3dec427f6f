"""Trees of fields: what is told, what is cut, where a path leads."""

from __future__ import annotations

from typing import Any

import pytest

from data.explained_documents import KIND, bed, release_kinds, schema_of
from specmux_tools.errors import UnknownField
from specmux_tools.explanation.field_details import DeclaredRule
from specmux_tools.explanation.field_path import parse
from specmux_tools.explanation.tree import Field, FieldPlace, as_json, find, tree_of

SOIL = {"$ref": "#/components/schemas/Soil"}


def grown(path: str = "spec", depth: int = 9, **spec: Any) -> Field:
    document = bed(**spec)
    return tree_of(document, find(document, schema_of(document), parse(path)), depth=depth)


def test_value_beside_a_reference_goes_before_its_target() -> None:
    soil = grown("spec.soil", soil={"allOf": [SOIL], "default": {"acidity": 7}, "description": "Ours."})
    assert (soil.description, soil.details.default) == ("Ours.", '{"acidity":7}')
    assert [(each.name, each.is_required) for each in soil.fields] == [("acidity", True), ("below", False)]
    assert soil.fields[0].details.limits == (("minimum", 3), ("maximum", 9))
    assert soil.type == "Soil"


def test_component_within_itself_ends_the_tree() -> None:
    soil = grown("spec.soil", soil=SOIL)
    below = soil.fields[1]
    assert (below.name, below.fields, below.has_more, soil.is_whole) == ("below", (), True, False)


def test_one_component_in_two_places_is_whole_in_both() -> None:
    spec = grown(left=SOIL, right={"type": "array", "items": SOIL})
    assert [len(each.fields) for each in spec.fields] == [2, 2]
    assert [each.type for each in spec.fields] == ["Soil", "[]Soil"]


def test_depth_and_number_of_fields_are_bounded() -> None:
    document = bed(soil=SOIL, other=SOIL)
    place = find(document, schema_of(document), ())
    assert tree_of(document, place, depth=1).fields[-1].has_more
    for most in range(12):
        tree = tree_of(document, place, max_fields=most)
        assert tree.size == min(most, 10) + 1
    assert tree_of(document, place, depth=0).has_more


def test_details_are_told() -> None:
    field = grown(
        "spec.sides",
        sides={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "side"],
            "nullable": True,
            "maxItems": 4,
            "description": "Sides.\n\nDeprecated: use borders.",
            "items": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "x-kubernetes-validations": [{"rule": "self.a > 1", "message": "too small"}, {"rule": 3}],
                "properties": {"name": {"type": "string", "enum": ["", "left"], "format": "slug"}},
            },
        },
    )
    details = field.details
    assert details.list_type == "map by name, side"
    assert details.limits == (("maxItems", 4),)
    assert details.rules == (DeclaredRule("self.a > 1", "too small"),)
    assert (details.is_nullable, details.preserves_unknown) == (True, True)
    assert details.deprecated == "Deprecated: use borders."
    assert field.fields[0].details.enum == ("", "left")
    told = as_json(bed(), KIND, ("spec", "sides"), field)
    assert told["fields"][0] == {
        "name": "name", "type": "string", "enum": ["", "left"], "format": "slug"
    }  # fmt: skip
    assert told["path"] == "spec.sides"


def test_limits_of_elements_are_called_theirs() -> None:
    field = grown("spec.names", names={"type": "array", "items": {"type": "string", "maxLength": 63}})
    assert field.details.limits == (("each maxLength", 63),)


@pytest.mark.parametrize("description", ["deprecated indicates this version is.", "Not Deprecated: really."])
def test_word_within_a_sentence_deprecates_nothing(description: str) -> None:
    assert grown("spec.a", a={"type": "string", "description": description}).details.deprecated == ""


def test_keyword_deprecates() -> None:
    assert grown("spec.a", a={"type": "string", "deprecated": True}).details.deprecated == "yes"


def test_key_of_a_map_leads_to_its_values() -> None:
    field = grown('spec.labels["a/b"]', labels={"type": "object", "additionalProperties": {"type": "string"}})
    assert field.type == "string"
    with pytest.raises(UnknownField):
        grown("spec.labels.app", labels={"type": "object", "additionalProperties": {"type": "string"}})


def test_unknown_field_comes_with_names_like_it() -> None:
    with pytest.raises(UnknownField, match="acidty") as caught:
        grown("spec.soil.acidty", soil=SOIL)
    assert caught.value.similar == ("acidity",)


def test_document_may_say_nonsense() -> None:
    odd = {"type": "object", "properties": {"a": 1, "b": {"$ref": 3}, "c": {"items": True}}, "required": 7}
    gone = {"$ref": "#/components/schemas/Gone"}
    spec = grown(odd=odd, allOf={"allOf": [3, {"properties": []}]}, gone=gone)
    assert [each.name for each in spec.fields] == ["allOf", "gone", "odd"]


@pytest.mark.long
def test_every_tree_of_the_release_has_each_field_once() -> None:
    for found in release_kinds():
        tree = tree_of(found.document, FieldPlace((), found.schema))
        waiting, seen = [tree], 0
        while waiting:
            field = waiting.pop()
            names = [each.name for each in field.fields]
            assert len(names) == len(set(names))
            waiting += field.fields
            seen += 1
        assert seen == tree.size
