"""What the golden cases leave open: documents written in another way, rings, mixed sides, limits."""

from __future__ import annotations

from typing import Any

import pytest

from data.compared import (
    compared_documents,
    compared_specs,
    definition,
    document,
    ids,
    of_documents,
    of_manifests,
    paths_of,
    told,
)
from specmux_converters.crd import build
from specmux_converters.errors import LimitExceeded
from specmux_tools.differences import Basis, ServedSide, add_document, compare
from specmux_tools.differences.rules import Impact

STRING = {"type": "string"}
INT_OR_STRING = {"x-kubernetes-int-or-string": True}


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def test_a_change_below_a_ring_is_told_once_for_each_way_in() -> None:
    def ring(**leaf: Any) -> dict[str, Any]:
        left = fields(right=ref("Right"), **leaf)
        return document(
            fields(a=ref("Left"), b=ref("Right")), {"Left": left, "Right": fields(left=ref("Left"))}
        )

    found = compared_documents(ring(x=STRING), ring())
    assert sorted(paths_of(found, "field-removed")) == ["spec.a.x", "spec.b.left.x"]


def test_what_was_found_inside_a_ring_does_not_hide_what_another_way_in_sees() -> None:
    """The second way in meets a pair whose result inside the ring was cut short."""

    def ring(leaf: dict[str, Any]) -> dict[str, Any]:
        components = {
            "A": fields(b=ref("B"), own=STRING),
            "B": fields(a=ref("A"), leaf=leaf),
        }
        return document(fields(first=ref("A"), second=ref("B")), components)

    found = compared_documents(ring(STRING), ring({"type": "integer"}))
    assert sorted(paths_of(found, "type-changed")) == ["spec.first.b.leaf", "spec.second.leaf"]


@pytest.mark.parametrize(
    "schema", [ref("A"), {"allOf": [ref("A")]}, {"allOf": [ref("A"), ref("A")]}, ref("nowhere")]
)
def test_a_component_that_is_a_ring_of_nothing_allows_anything(schema: dict[str, Any]) -> None:
    found = compared_documents(document(ref("A"), {"A": schema}), document({}, {}))
    assert told(found) == []


def test_what_all_of_says_together_is_compared_with_what_is_written_once() -> None:
    parts = {"A": fields(a=STRING), "B": {**fields(b=STRING), "required": ["b"], "maxProperties": 3}}
    both = {"allOf": [ref("A"), ref("B"), {"maxProperties": 2}]}
    once = {**fields(a=STRING, b=STRING), "required": ["b"], "maxProperties": 2}
    assert told(compared_documents(document(both, parts), document(once))) == []


def test_a_sibling_of_a_reference_wins_for_annotations() -> None:
    old = document({"allOf": [ref("A")], "x-kubernetes-map-type": "atomic"}, {"A": fields(a=STRING)})
    new = document(ref("A"), {"A": {**fields(a=STRING), "x-kubernetes-map-type": "atomic"}})
    assert told(compared_documents(old, new)) == []


@pytest.mark.parametrize(
    "spelling",
    [
        INT_OR_STRING,
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
        {"type": "string", "format": "int-or-string"},
        {"type": ["integer", "string"]},
    ],
)
def test_an_integer_or_a_string_is_that_in_every_spelling(spelling: dict[str, Any]) -> None:
    plain = fields(f={"oneOf": [{"type": "string"}, {"type": "integer"}]})
    assert told(compared_documents(document(plain), document(fields(f=spelling)))) == []


def test_true_and_one_differ_as_defaults() -> None:
    found = compared_specs(fields(f={"default": 1}), fields(f={"default": True}))
    assert ids(found) == {"default-changed"}
    assert ids(compared_specs(fields(f={"default": 1}), fields(f={"default": 1.0}))) == set()


def test_a_map_of_anything_that_became_an_empty_object_keeps_nothing() -> None:
    found = compared_specs(
        fields(f={"type": "object", "additionalProperties": STRING}), fields(f={"type": "object"})
    )
    assert told(found) == [("map-closed", "spec.f", "breaking")]


def test_a_described_object_without_fields_takes_anything() -> None:
    old, new = fields(f={"type": "object", "additionalProperties": STRING}), fields(f={"type": "object"})
    assert told(compared_documents(document(old), document(new))) == [
        ("field-untyped", "spec.f{}", "warning")
    ]


def test_the_fields_of_an_embedded_resource_are_not_told_singly() -> None:
    inner = {"type": "object", "properties": {"apiVersion": STRING, "kind": STRING, "x": STRING}}
    embedded = {**inner, "x-kubernetes-embedded-resource": True, "required": ["apiVersion", "kind"]}
    plain = fields(f=fields(x=STRING))
    assert ids(compared_specs(plain, fields(f=embedded))) == {"embedded-resource-added"}


def test_a_definition_and_the_document_made_of_it_say_the_same() -> None:
    manifest = definition(
        {
            **fields(a=STRING, l={"type": "array", "items": {"x-kubernetes-int-or-string": True}}),
            "required": ["a"],
        },
        subresources={
            "status": {},
            "scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"},
        },
        selectableFields=[{"jsonPath": ".spec.a"}],
    )
    built = ServedSide()
    for made in build([manifest]).documents.values():
        add_document(built, made)
    definitions = of_manifests([manifest])
    assert told(compare(definitions, built)) == []
    assert told(compare(built, definitions)) == []


def test_a_definition_against_a_document_that_lost_a_field() -> None:
    new = ServedSide()
    for made in build([definition(fields(a=STRING))]).documents.values():
        add_document(new, made)
    found = compare(of_manifests([definition(fields(a=STRING, b=STRING))]), new)
    assert told(found) == [("field-removed", "spec.b", "breaking")]


def test_a_definition_may_restrict_the_name_of_its_objects() -> None:
    old, new = definition({}), definition({})
    root = new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    root["properties"]["metadata"] = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 9}},
    }
    found = compare(of_manifests([old]), of_manifests([new]))
    assert told(found) == [("constraint-tightened", "metadata.name", "breaking")]


def test_a_merged_document_is_compared_by_its_group_versions() -> None:
    def merged(*versions: str) -> dict[str, Any]:
        parts = [document({}, version=version) for version in versions]
        paths = {path: item for part in parts for path, item in part["paths"].items()}
        return {**parts[0], "paths": paths}

    found = compare(of_documents([merged("v1", "v2")]), of_documents([merged("v2")]))
    assert told(found) == [("group-version-removed", "", "breaking")]


def test_the_basis_may_be_said() -> None:
    old, new = document(fields(f=STRING)), document({**fields(f=STRING), "required": ["f"]})
    assert told(compared_documents(old, new)) == [("field-became-required", "spec.f", "warning")]
    enforced = compared_documents(old, new, Basis.ENFORCED)
    assert told(enforced) == [("field-became-required", "spec.f", "breaking")]


def test_a_new_required_field_with_a_default_breaks_nobody_where_it_is_filled_in() -> None:
    new = {**fields(f={**STRING, "default": ""}), "required": ["f"]}
    assert ids(compared_specs(fields(), new)) == {"field-added"}
    assert ids(compared_documents(document(fields()), document(new))) == {"field-added-required"}


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("!has(self.b) || self.b > 0", "rule-added-for-new-fields"),
        ("(!has(self.b)) || self.b > 0", "rule-added-for-new-fields"),
        ("has(self.b) ? self.b > 0 : true", "rule-added-for-new-fields"),
        ("!(has(self.a) && has(self.b))", "rule-added-for-new-fields"),
        ("has(self.b) ? self.b > 0 : self.a > 0", "rule-added"),
        ("!has(self.a) || self.a > 0", "rule-added"),
        ("!(has(self.a) || has(self.b))", "rule-added"),
        ("!has(self.b) && self.a > 0", "rule-added"),
        ("self.a == '!has(self.b) || '", "rule-added"),
        ("has(self.b) || self.a != 'oldSelf' // oldSelf", "rule-added"),
        ("has(self.b) || self.a == oldSelf.a", "transition-rule-added"),
        ("has(self.b) || self.oldSelf == self.a", "rule-added"),
        ("has(self.b) ? (self.a > 0 ? self.b > 0 : self.b > 1) : true", "rule-added-for-new-fields"),
        ("oldSelf == self", "field-became-immutable"),
        ("oldSelf == ", "rule-added"),
    ],
)
def test_whom_a_new_rule_can_break(rule: str, change: str) -> None:
    old = fields(f=fields(a=STRING))
    new = fields(f={**fields(a=STRING, b=STRING), "x-kubernetes-validations": [{"rule": rule}]})
    assert ids(compared_specs(old, new)) == {"field-added", change}


@pytest.mark.parametrize(
    ("rule", "is_same"),
    [
        ('(self.size()) != "a b" // why', True),
        ("self.size()!='a b'", True),
        ("self.size() != 'ab'", False),
        ("self.size() != b'a b'", False),
    ],
)
def test_a_rule_that_is_only_spelled_otherwise_is_no_change(rule: str, is_same: bool) -> None:
    old, new = (
        fields(f={**STRING, "x-kubernetes-validations": [{"rule": each}]})
        for each in ("self.size() != 'a b'", rule)
    )
    assert ids(compared_specs(old, new)) == (set() if is_same else {"rule-changed"})


def test_several_new_rules_of_one_place_are_one_change_that_names_them_all() -> None:
    rules = [{"rule": "self.size() > 1"}, {"rule": "self.size() < 9"}]
    found = compared_specs(fields(f=STRING), fields(f={**STRING, "x-kubernetes-validations": rules}))
    assert [(place.id, place.new) for place in found.places] == [
        ("rule-added", ["self.size() > 1", "self.size() < 9"])
    ]


def test_documents_that_double_with_every_level_are_refused_within_bounds() -> None:
    def doubling(leaf: dict[str, Any]) -> dict[str, Any]:
        levels = {f"L{n}": fields(a=ref(f"L{n + 1}"), b=ref(f"L{n + 1}")) for n in range(40)}
        return document(ref("L0"), {**levels, "L40": fields(x=leaf)})

    with pytest.raises(LimitExceeded, match="100000 places"):
        compared_documents(doubling(STRING), doubling({"type": "integer"}))


@pytest.mark.long
def test_a_clique_of_components_is_refused_within_bounds() -> None:
    def clique(leaf: dict[str, Any]) -> dict[str, Any]:
        names = [f"C{n}" for n in range(30)]
        return document(ref("C0"), {name: fields(x=leaf, **{n: ref(n) for n in names}) for name in names})

    with pytest.raises(LimitExceeded):
        compared_documents(clique(STRING), clique({"type": "integer"}))


def test_a_parameter_that_takes_fewer_values_breaks_who_sends_the_others() -> None:
    def listing(**schema: Any) -> dict[str, Any]:
        parsed = document({"type": "object"})
        (item,) = parsed["paths"].values()
        item["get"]["parameters"] = [{"name": "limit", "in": "query", "schema": schema}]
        return parsed

    for old, new in (
        (listing(type="string", enum=["All", "Client"]), listing(type="string", enum=["All"])),
        (listing(type="integer", maximum=1000), listing(type="integer", maximum=10)),
    ):
        (place,) = compared_documents(old, new).places
        assert (place.id, place.what, place.impacts.write) == (
            "parameter-tightened",
            "query:limit",
            Impact.BREAKING,
        )
        assert not compared_documents(new, old).places


def test_what_an_operation_asks_and_answers_beside_its_schemas() -> None:
    def listing(change: Any = None) -> dict[str, Any]:
        parsed = document({"type": "object"})
        (item,) = parsed["paths"].values()
        limit = {"name": "limit", "in": "query", "schema": {"type": "integer", "default": 100}}
        item["get"]["parameters"] = [limit]
        item["get"]["responses"]["200"]["headers"] = {"X-Rate": {"schema": {"type": "integer"}}}
        if change is not None:
            change(item["get"])
        return parsed

    for change, expected in (
        (lambda get: get["parameters"][0]["schema"].update(default=10), ("parameter-default-changed", "W--")),
        (lambda get: get["responses"]["200"].pop("headers"), ("response-header-removed", "-W-")),
        (lambda get: get.update(security=[{"key": []}]), ("security-added", "B--")),
        (lambda get: get.update(security=[{"key": []}, {}]), None),
    ):
        found = compared_documents(listing(), listing(change)).places
        assert [(each.id, letters(each)) for each in found] == ([expected] if expected else [])


def test_responses_are_compared_in_the_order_of_their_codes() -> None:
    def answering() -> dict[str, Any]:
        parsed = document({"type": "object"})
        (item,) = parsed["paths"].values()
        for code in range(200, 208):
            item["get"]["responses"][str(code)] = {"headers": {f"x-{code}": {}}}
        return parsed

    kept = answering()
    for answer in next(iter(kept["paths"].values()))["get"]["responses"].values():
        answer.pop("headers")
    lost = [each.what for each in compared_documents(answering(), kept).places]
    assert lost == [f"x-{code}" for code in range(200, 208)]


def letters(place: Any) -> str:
    return "".join("-WB"[each] for each in (place.impacts.write, place.impacts.read, place.impacts.stored))


def test_a_webhook_that_converts_no_more_is_a_warning() -> None:
    def converted(strategy: str) -> ServedSide:
        value = definition({"type": "object"})
        value["spec"]["versions"].append({**value["spec"]["versions"][0], "name": "v2", "storage": False})
        value["spec"]["conversion"] = {"strategy": strategy}
        return of_manifests([value])

    (place,) = compare(converted("Webhook"), converted("None")).places
    assert (place.id, letters(place)) == ("conversion-removed", "WWW")
    assert not compare(converted("None"), converted("Webhook")).places


def test_a_required_field_that_loses_its_default_breaks_what_is_stored_without_it() -> None:
    def required(**keywords: Any) -> dict[str, Any]:
        return {**fields(a={**STRING, **keywords}), "required": ["a"]}

    (place,) = compared_specs(required(default="x"), required()).places
    assert (place.id, letters(place)) == ("default-removed", "BWB")


@pytest.mark.parametrize(
    ("values", "added", "breaks"),
    [
        ([0, 4], {"anyOf": [{"minimum": 0}]}, False),
        ([0, 4], {"anyOf": [{"minimum": 1, "maximum": 4}, {"multipleOf": 2}]}, False),
        ([0, 4], {"anyOf": [{"minimum": 1}, {"maximum": -1}]}, True),
        ([1, 3], {"oneOf": [{"maximum": 1}, {"minimum": 3}]}, False),
        ([1, 3], {"oneOf": [{"maximum": 3}, {"minimum": 3}]}, True),
        ([1, 3], {"not": {"minimum": 4}}, False),
        ([1, 3], {"not": {"enum": [3]}}, True),
        ([1, 3], {"not": {"format": "made-up"}}, True),
    ],
)
def test_branches_are_tried_on_listed_values(values: list[int], added: dict[str, Any], breaks: bool) -> None:
    old = fields(a={"type": "integer", "enum": values})
    new = fields(a={"type": "integer", "enum": values, **added})
    impacts = [place.impacts.write for place in compared_specs(old, new).places]
    assert (Impact.BREAKING in impacts) == breaks


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({**INT_OR_STRING}, {**INT_OR_STRING, "format": "date"}),
        (
            {"type": "object", "oneOf": [{"required": ["a"]}]},
            {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["a"]}]},
        ),
        (
            {"type": "object"},
            {"type": "object", "allOf": [{"oneOf": [{"required": ["a"]}, {"required": ["a"]}]}]},
        ),
    ],
)
def test_what_random_pairs_found_breaks_writers(old: dict[str, Any], new: dict[str, Any]) -> None:
    places = compared_specs(fields(x=old), fields(x=new)).places
    assert Impact.BREAKING in [place.impacts.write for place in places]


@pytest.mark.parametrize(
    ("bounds", "enum", "is_told"),
    [
        ({"minimum": 1, "maximum": 2}, [1, 2], False),
        ({"minimum": 0, "exclusiveMinimum": True, "maximum": 2.5}, [3, 2, 1], False),
        ({"minimum": 1, "maximum": 3}, [1, 2], True),
        ({"minimum": 1}, [1, 2], True),
        ({"minimum": 1, "maximum": 10**9}, [1, 2], True),
    ],
)
def test_enum_of_a_whole_range_refuses_nothing_new(
    bounds: dict[str, Any], enum: list[int], is_told: bool
) -> None:
    old = fields(a={"type": "integer", **bounds})
    found = ids(compared_specs(old, fields(a={"type": "integer", "enum": enum})))
    assert ("enum-added" in found) is is_told
