"""Reports: places, hints, directives, lists; and that a report is that of the object, whatever its form."""

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
from specmux_tools.validation import (
    Check,
    Directive,
    Severity,
    UnsupportedMediaType,
    ValidationReport,
    Validator,
)
from specmux_tools.validation.messages import status_of, warning_fields, warning_texts

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
BOX = {"group": "example.com", "version": "v1", "kind": "Box"}
SPEC = {"$ref": "#/components/schemas/com.example.v1.BoxSpec"}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.0",
    "paths": {
        "/apis/example.com/v1/boxes/{name}": {
            method: {
                "x-kubernetes-group-version-kind": {"group": "example.com", "version": "v1", "kind": "Box"}
            }
            for method in ("get", "put")
        },
        "/apis/example.com/v1/boxes": {
            "post": {
                "x-kubernetes-group-version-kind": {"group": "example.com", "version": "v1", "kind": "Box"}
            }
        },
    },
    "components": {
        "schemas": {
            "com.example.v1.Box": {
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"$ref": f"#/components/schemas/{META}.ObjectMeta"},
                    "spec": {"allOf": [SPEC]},
                    "status": {"allOf": [SPEC]},
                },
                "x-kubernetes-group-version-kind": [BOX],
            },
            "com.example.v1.BoxSpec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "format": "int32"},
                    "colour": {"type": "string", "enum": ["red", "green"]},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "inner": {"$ref": "#/components/schemas/com.example.v1.BoxSpec"},
                    "parts": {
                        "type": "array",
                        "items": {"$ref": "#/components/schemas/com.example.v1.BoxSpec"},
                    },
                },
            },
            f"{META}.ObjectMeta": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            },
        }
    },
}
VALIDATOR = Validator(DocumentSet({GroupVersion("apis/example.com/v1"): DOCUMENT}))


def box(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"}, "spec": spec}


def places(report: ValidationReport) -> list[tuple[str, int | None, int | None]]:
    return [(each.message, each.line, each.column) for each in report.violations]


YAML = b"""apiVersion: example.com/v1
kind: Box
metadata:
  name: a
  labels: {"a b": x}
spec:
  size: 1
  siez: 2
  parts:
  - size: 1
    colour: blue
  - {color: red}
  size: 3
"""


def test_violations_have_their_places_in_yaml() -> None:
    report = VALIDATOR.validate(YAML, "application/yaml")
    assert [(each.check, each.line, each.column) for each in report.violations] == [
        (Check.DUPLICATE_FIELD, 13, 3),
        (Check.UNKNOWN_FIELD, 12, 6),
        (Check.UNKNOWN_FIELD, 8, 3),
        (Check.SCHEMA, 11, 5),
        (Check.SCHEMA, 12, 5),
        (Check.METADATA, 5, 12),
    ]
    assert [each.hint for each in report.violations] == [None, "colour", "size", None, None, None]


def test_violations_have_their_places_in_json() -> None:
    body = b'{"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"},\n'
    body += b' "spec": {"size": 1, "x": {},\n  "size": 2}}'
    assert places(VALIDATOR.validate(body)) == [
        ('unknown field "spec.x"', 2, 22),
        ('duplicate field "spec.size"', 3, 3),
    ]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b'{"apiVersion": "example.com/v1",\n "kind" "Box"}', (2, 9)),
        (b'{"apiVersion": "example.com/v1", "kind": "Box",\n "spec": {"size": "x"}}', (2, 11)),
        (b'{"apiVersion": "example.com/v1", "kind": "None"}', (1, 34)),
        (b'{"apiVersion": "example.com/v1",\n "kind": 1}', (2, 2)),
    ],
)
def test_a_body_that_cannot_be_decoded_has_a_place(body: bytes, place: tuple[int, int]) -> None:
    report = VALIDATOR.validate(body)
    (violation,) = report.violations
    assert report.fatal == violation.message
    assert (violation.line, violation.column) == place


def test_what_the_directive_makes_of_unknown_fields() -> None:
    body = orjson.dumps(box(size=1, x=1))
    reports = {each: VALIDATOR.validate(body, directive=each) for each in Directive}
    assert [each.is_valid for each in reports.values()] == [False, True, True]
    assert [len(each.violations) for each in reports.values()] == [1, 1, 0]
    assert reports[Directive.WARN].violations[0].severity is Severity.WARNING
    assert warning_fields(warning_texts(reports[Directive.WARN].strict_errors)) == [
        '299 - "unknown field \\"spec.x\\""'
    ]
    status = status_of(reports[Directive.STRICT])
    assert status is not None and status["code"] == 400
    assert status["message"] == (
        'Box in version "v1" cannot be handled as a Box: strict decoding error: unknown field "spec.x"'
    )
    assert status_of(reports[Directive.WARN]) is None


def test_an_object_that_is_wrong_is_refused_with_its_causes() -> None:
    status = status_of(VALIDATOR.validate(orjson.dumps(box(colour="blue"))))
    assert status is not None and (status["code"], status["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in status["details"]["causes"]] == ["spec.colour", "spec.size"]
    assert status["details"]["causes"][1]["reason"] == "FieldValueRequired"


def test_objects_of_a_list_are_checked_where_they_are() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: example.com/v1\n  kind: Box\n"
    text += "  metadata: {name: a}\n  spec: {size: 1, x: 1}\n- {kind: Box}\n"
    outer, first, second = VALIDATOR.validate_all(text.encode(), "application/yaml")
    assert outer.is_valid
    assert ('unknown field "spec.x"', 7, 19) in places(first)
    assert second.fatal == "Object 'apiVersion' is missing in '{\"kind\":\"Box\"}'"


def test_what_creating_ignores_lacks_nothing() -> None:
    told = VALIDATOR.validate(orjson.dumps({**box(size=1), "status": {}}))
    assert told.violations == ()
    told = VALIDATOR.validate(orjson.dumps({**box(), "status": {"sise": 1}}))
    assert [each.message for each in told.violations] == [
        'unknown field "status.sise"',
        "spec.size: Required value",
    ]


def test_other_forms_are_refused() -> None:
    with pytest.raises(UnsupportedMediaType, match="application/yaml"):
        VALIDATOR.validate(b"", "text/plain")


@pytest.mark.parametrize(
    "body",
    [
        b'{"apiVersion":"example.com/v1","kind":"Box","spec":{' + b'"x":1,' * 100_000 + b'"x":1}}',
        b'{"apiVersion":"example.com/v1","kind":"Box","spec":' + b'{"inner":' * 5_000 + b"1" + b"}" * 5_001,
        b'{"apiVersion":"example.com/v1","kind":"Box","spec":{"size":' + b"9" * 100_000 + b"}}",
        b'{"apiVersion":"example.com/v1","kind":"Box","spec":{"size":NaN}}',
        b"\xff\xfe\x00",
    ],
)
def test_bad_input_is_told_at_once(body: bytes) -> None:
    report = VALIDATOR.validate(body)
    assert not report.is_valid
    assert len(report.violations) <= 101


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join(['*a' + str(n - 1)] * 9)}]" for n in range(1, 12)]
    report = VALIDATOR.validate("\n".join(lines).encode(), "application/yaml")
    assert report.fatal == "yaml: document contains excessive aliasing"


keys = st.sampled_from(["size", "colour", "labels", "inner", "parts", "x", "metadata", "spec", "name", "a"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**33) | st.sampled_from(["", "red", "blue", "a b", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.long
@examples(200)
@given(st.dictionaries(keys, values, max_size=4))
def test_the_form_does_not_matter(fields: dict[str, Any]) -> None:
    """But for places and, in CBOR, for keys in another order."""
    value = {**fields, "apiVersion": "example.com/v1", "kind": "Box"}
    value = orjson.loads(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
    reports = [
        VALIDATOR.validate(orjson.dumps(value)),
        VALIDATOR.validate(yaml.safe_dump(value).encode(), "application/yaml"),
        VALIDATOR.validate(cbor2.dumps(value), "application/cbor"),
    ]
    first, *others = [
        [(each.check, each.path, each.message) for each in report.violations] for report in reports
    ]
    assert all(each == first for each in others)


@examples(200)
@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_no_text_breaks_it(text: str) -> None:
    for media_type in ("application/json", "application/yaml", "application/cbor"):
        report = VALIDATOR.validate(text.encode("utf-8", "surrogatepass"), media_type)
        assert not report.is_valid


def test_all_wrong_types_are_listed_and_the_status_has_what_an_apiserver_says() -> None:
    text = (
        "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\nspec:\n"
        "  size: two\n  labels: {b: 1}\n  colr: red\n  parts: [3, {}]\n"
    )
    report = VALIDATOR.validate(text.encode(), "application/yaml")
    first = "json: cannot unmarshal number into Go struct field BoxSpec.spec.labels of type string"
    assert report.fatal == first  # Go reads the keys in their order
    assert [(each.check, each.line) for each in report.violations] == [
        (Check.DECODING, 6),
        (Check.DECODING, 8),
        (Check.DECODING, 5),
        (Check.UNKNOWN_FIELD, 7),
        (Check.SCHEMA, 8),
    ]
    assert report.violations[0].message == first
    status = status_of(report)
    assert status is not None
    assert status["message"] == f'Box in version "v1" cannot be handled as a Box: {first}'


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", 3, 2),
        ("a:\n  b: 'unclosed\n  c: 1\n", 2, 6),
        ("a: 1\n\tb: 2\n", 2, 1),
        ("a: b: c\n", 1, 5),
    ],
)
def test_yaml_that_cannot_be_read_has_line_and_column(text: str, line: int, column: int) -> None:
    (violation,) = VALIDATOR.validate(text.encode(), "application/yaml").violations
    assert (violation.line, violation.column) == (line, column)


def test_long_body_without_a_kind_is_not_printed() -> None:
    body = orjson.dumps({"apiVersion": "example.com/v1", "metadata": {"annotations": {"a": "x" * 100_000}}})
    report = VALIDATOR.validate(body)
    assert report.fatal is not None
    assert report.fatal.startswith("Object 'Kind' is missing in '{\"apiVersion\"")
    assert len(report.fatal) < 400
