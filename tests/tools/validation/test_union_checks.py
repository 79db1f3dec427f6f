"""Unions in reports: off unless asked for, wherever a schema declares them, beside the stored object."""

from __future__ import annotations

from typing import Any

import cbor2
import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from specmux_converters.group_versions import GroupVersion
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Check, UnionAlgorithm, Validator
from specmux_tools.validation.messages import status_of

KIND = {"group": "example.com", "version": "v1", "kind": "Box"}
SEED, LEGACY = UnionAlgorithm.SEED, UnionAlgorithm.LEGACY


def text(**more: Any) -> dict[str, Any]:
    return {"type": "string", **more}


SCHEMAS: dict[str, Any] = {
    "com.example.v1.Box": {
        "type": "object",
        "properties": {
            "apiVersion": text(),
            "kind": text(),
            "one": {"allOf": [{"$ref": "#/components/schemas/com.example.v1.Chosen"}]},
            "plain": {"$ref": "#/components/schemas/com.example.v1.Plain"},
            "profile": {"$ref": "#/components/schemas/io.k8s.api.core.v1.SeccompProfile"},
            "named": {
                "type": "object",
                "additionalProperties": {"$ref": "#/components/schemas/com.example.v1.Chosen"},
            },
            "listed": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["id"],
                "items": {"$ref": "#/components/schemas/com.example.v1.Chosen"},
            },
        },
        "x-kubernetes-group-version-kind": [KIND],
    },
    "com.example.v1.Chosen": {
        "type": "object",
        "properties": {
            "id": text(),
            "type": text(enum=["A", "B", "None"]),
            "a": text(),
            "b": {"$ref": "#/components/schemas/com.example.v1.Chosen"},
        },
        "x-kubernetes-unions": [
            {"discriminator": "type", "fields-to-discriminateBy": {"a": "A", "b": "B"}},
        ],
    },
    "com.example.v1.Plain": {
        "type": "object",
        "properties": {"x": text(), "y": text()},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"x": "X", "y": "Y"}}],
    },
    "io.k8s.api.core.v1.SeccompProfile": {
        "type": "object",
        "properties": {"type": text(), "localhostProfile": text()},
        "x-kubernetes-unions": [
            {
                "discriminator": "type",
                "fields-to-discriminateBy": {"localhostProfile": "LocalhostProfile"},
            }
        ],
    },
}
PATHS: dict[str, Any] = {
    "/apis/example.com/v1/boxes": {"post": {"x-kubernetes-group-version-kind": KIND}},
}


def validator(unions: UnionAlgorithm, *, title: str = "Kubernetes") -> Validator:
    document = {"info": {"title": title}, "paths": PATHS, "components": {"schemas": SCHEMAS}}
    return Validator(DocumentSet({GroupVersion("apis/example.com/v1"): document}), unions=unions)


def box(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Box", **fields}


def said(unions: UnionAlgorithm, new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    report = validator(unions).validate(orjson.dumps(box(**new)), old=None if old is None else box(**old))
    return [each.message for each in report.violations if each.check is Check.UNION]


BOTH = {"type": "A", "a": "1", "b": {"type": "None"}}
MULTIPLE = 'multiple union members set (a, b) without a change of discriminator "type"'


def test_off_by_default() -> None:
    body = orjson.dumps(box(one=BOTH))
    documents = DocumentSet(
        {GroupVersion("apis/example.com/v1"): {"paths": PATHS, "components": {"schemas": SCHEMAS}}}
    )
    assert Validator(documents).validate(body).violations == ()
    assert not Validator(documents, unions=SEED).validate(body).is_valid


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ({"one": {"type": "A", "a": "1"}}, []),
        ({"one": {"type": "None"}}, []),
        ({"one": None}, []),
        ({"one": BOTH}, [f'one: Invalid value: "{{a, b}}": {MULTIPLE}']),
        ({"one": {"type": "A"}}, ['one.a: Required value: must be specified when `type` is "A"']),
        (
            {"one": {"type": "None", "a": "1"}},
            ['one.a: Invalid value: "": may only be specified when `type` is "A"'],
        ),
        (
            {"one": {"type": "C"}},
            ['one.type: Unsupported value: "C": supported values: "A", "B", "None"'],
        ),
        ({"one": {"a": "1"}}, ['one.type: Unsupported value: "": supported values: "A", "B", "None"']),
        ({"plain": {"x": "1"}}, []),
        ({"plain": {}}, ['plain: Invalid value: "": must specify one of: `x`, `y`']),
        (
            {"plain": {"y": "1", "x": "2"}},
            ['plain: Invalid value: "{x, y}": must specify exactly one of: `x`, `y`'],
        ),
        (
            {"one": {"type": "B", "b": {"type": "A"}}},
            ['one.b.a: Required value: must be specified when `type` is "A"'],
        ),
        (
            {
                "named": {"k": {"type": "A"}},
                "listed": [{"id": "1", "type": "None"}, {"id": "2", "type": "B"}],
            },
            [
                'named.k.a: Required value: must be specified when `type` is "A"',
                'listed[1].b: Required value: must be specified when `type` is "B"',
            ],
        ),
        ({"profile": {"type": "Localhost", "localhostProfile": "p"}}, []),
        (
            {"profile": {"type": "RuntimeDefault", "localhostProfile": "p"}},
            ['profile.localhostProfile: Invalid value: "": may only be specified when `type` is "Localhost"'],
        ),
    ],
)
def test_the_seed_on_an_object_that_is_created(new: dict[str, Any], expected: list[str]) -> None:
    assert said(SEED, new) == expected


def test_the_seed_clears_what_a_changed_discriminator_does_not_select() -> None:
    before, after = {"type": "B", "b": {"type": "None"}}, {"type": "A", "a": "1", "b": {"type": "A"}}
    assert said(SEED, {"one": after}, {"one": before}) == []
    assert said(SEED, {"named": {"k": after}}, {"named": {"k": before}}) == []
    assert len(said(SEED, {"one": after})) == 2


def test_items_are_compared_with_stored_ones_by_their_keys() -> None:
    stored = [{"id": "1", "type": "A", "a": "1"}, {"id": "2", "type": "B", "b": {"type": "None"}}]
    changed = {"id": "2", "type": "A", "a": "1", "b": {"type": "None"}}
    assert said(SEED, {"listed": [changed]}, {"listed": stored}) == []
    assert said(SEED, {"listed": [{**changed, "id": "1"}]}, {"listed": stored}) == [
        f'listed[0]: Invalid value: "{{a, b}}": {MULTIPLE}'
    ]


@pytest.mark.parametrize("old", [{"one": "text"}, {"one": []}, {"listed": {}}, {"listed": [1, None]}, {}])
def test_a_stored_object_of_another_shape_counts_as_none(old: dict[str, Any]) -> None:
    new = {"one": {"type": "A", "a": "1"}, "listed": [{"id": "1", "type": "None"}]}
    assert said(SEED, new, old) == []


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ({"one": BOTH}, None, "one: multiple new fields added: a, b"),
        ({"one": {"a": "1", "b": {}}}, None, "one: multiple fields set without discriminator change: a, b"),
        (
            {"one": {"type": "B", "a": "1"}},
            {"one": {}},
            "one: discriminator (B) and field changed (a) don't match",
        ),
        ({"one": {"type": "B", "a": "1"}}, {"one": {"type": "A", "a": "1"}}, None),
        ({"one": {"type": "A"}}, None, None),
    ],
)
def test_legacy_tells_its_conflicts(new: Any, old: Any, expected: str | None) -> None:
    assert said(LEGACY, new, old) == ([] if expected is None else [expected])


def test_places_and_the_status() -> None:
    report = validator(SEED).validate(
        b"apiVersion: example.com/v1\nkind: Box\none:\n  type: A\n  b: {type: None}\n", "application/yaml"
    )
    assert [(each.line, each.path) for each in report.violations] == [(3, ("one", "a")), (5, ("one", "b"))]
    status = status_of(report)
    assert status is not None
    assert status["code"] == 422
    assert [(each["reason"], each["field"]) for each in status["details"]["causes"]] == [
        ("FieldValueRequired", "one.a"),
        ("FieldValueInvalid", "one.b"),
    ]


def test_the_forms_of_a_body_have_equal_reports() -> None:
    value = box(one=BOTH, plain={})
    checked = validator(SEED)
    reports = [
        checked.validate(orjson.dumps(value)),
        checked.validate(yaml.safe_dump(value).encode(), "application/yaml"),
        checked.validate(cbor2.dumps(value), "application/cbor"),
    ]
    assert {tuple(sorted(each.message for each in report.violations)) for report in reports} == {
        tuple(sorted(each.message for each in reports[0].violations))
    }
    assert len(reports[0].violations) == 2


def test_documents_of_custom_resources_too() -> None:
    body = orjson.dumps(box(metadata={"name": "a"}, one=BOTH))
    report = validator(SEED, title="Kubernetes CRD Swagger").validate(body)
    assert [each.message for each in report.violations if each.check is Check.UNION] == [
        f'one: Invalid value: "{{a, b}}": {MULTIPLE}'
    ]


NAMES = st.sampled_from(("one", "plain", "profile", "named", "listed", "id", "type", "a", "b", "x", "y", "k"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(("", "A", "B", "None", "z")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=5)


@pytest.mark.long
@given(new=OBJECTS, old=st.none() | VALUES, unions=st.sampled_from((SEED, LEGACY)))
@examples(150)
def test_no_shape_of_either_object_is_too_much(new: Any, old: Any, unions: UnionAlgorithm) -> None:
    for title in ("Kubernetes", "Kubernetes CRD Swagger"):
        report = validator(unions, title=title).validate(orjson.dumps(box(**new)), old=old)
        assert all(each.path for each in report.violations if each.check is Check.UNION)


def test_a_declaration_that_cannot_be_read_is_reported_where_an_object_comes_by_it() -> None:
    chosen = {**SCHEMAS["com.example.v1.Chosen"], "x-kubernetes-unions": [{"discriminator": "kind"}]}
    schemas = {**SCHEMAS, "com.example.v1.Chosen": chosen}
    document = {"paths": PATHS, "components": {"schemas": schemas}}
    checked = Validator(DocumentSet({GroupVersion("apis/example.com/v1"): document}), unions=SEED)
    report = checked.validate(orjson.dumps(box(one={"type": "A"}, plain={"x": "1"})))
    (note,) = report.violations
    assert (note.check, note.path) == (Check.NOT_CHECKED, ("one",))
    assert "no member that can be read" in note.message
    assert not report.is_complete
    assert checked.validate(orjson.dumps(box(plain={"x": "1"}))).is_complete


@pytest.mark.parametrize("title", ["Kubernetes", "Kubernetes CRD Swagger"])
def test_branches_are_judged_once(title: str) -> None:
    """Those of a definition are its schema's business."""
    plain = {
        "type": "object",
        "properties": {"x": text(), "y": text()},
        "oneOf": [{"required": ["x"]}, {"required": ["y"]}],
    }
    schemas = {**SCHEMAS, "com.example.v1.Plain": plain}
    document = {"info": {"title": title}, "paths": PATHS, "components": {"schemas": schemas}}
    checked = Validator(DocumentSet({GroupVersion("apis/example.com/v1"): document}), unions=SEED)
    report = checked.validate(orjson.dumps(box(metadata={"name": "a"}, plain={"x": "1", "y": "2"})))
    assert not report.is_valid
    found = [each for each in report.violations if each.check is Check.UNION]
    assert len(found) == (title == "Kubernetes")
