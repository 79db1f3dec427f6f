"""Whatever texts an object holds, the report on it is made, and can be written as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.compared import definition
from specmux_converters.crd import build
from specmux_converters.group_versions import GroupVersion
from specmux_converters.resources import GroupVersionKind
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Validator
from specmux_tools.validation.decoding.json_reader import read_json
from specmux_tools.validation.schema.formats import FORMATS
from specmux_tools.validation.schema.scalars import QUANTITY_FORMAT

TEXTS = st.text(st.characters(codec=None), max_size=6)
SPEC = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "pattern": "^x", "maxLength": 3},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "port": {"x-kubernetes-int-or-string": True},
        **{name: {"type": "string", "format": name} for name in FORMATS},
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.org"},
    "spec": {
        "group": "example.org",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def validator() -> Validator:
    return Validator(DocumentSet(build([DEFINITION]).documents))


@given(first=TEXTS, second=TEXTS)
def test_any_text_anywhere(validator: Validator, first: str, second: str) -> None:
    spec: dict[str, Any] = dict.fromkeys(SPEC["properties"], first)  # type: ignore[call-overload]
    spec |= {"map": {first: 1, second: first}, "set": [first, second, first], first: second}
    metadata = {
        "name": first,
        "namespace": second,
        "labels": {first: second},
        "annotations": {second: first},
        "finalizers": [first],
        "ownerReferences": [{"apiVersion": first, "kind": second, "name": first, "uid": second}],
    }
    for kind in ("Widget", first):
        value = {"apiVersion": "example.org/v1", "kind": kind, "metadata": metadata, "spec": spec}
        body = json.dumps(value).encode()
        for media_type in ("application/json", "application/yaml"):
            for report in validator.validate_all(body, media_type):
                orjson.dumps(report.as_document())


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r'"\ud800"', "\ufffd"),
        (r'"\uDFFFa"', "\ufffda"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\ud800\ud83d\ude00"', "\ufffd\U0001f600"),
        (r'"\udc00\ud800"', "\ufffd\ufffd"),
        (r'"\\ud800"', r"\ud800"),
        (r'"\\\ud800"', "\\\ufffd"),
    ],
)
def test_lone_surrogates_are_read_as_go_reads_them(written: str, read: str) -> None:
    assert read_json(b'{"a":%s}' % written.encode()) == {"a": read}


def test_keys_that_differ_in_lone_surrogates_are_one_key_twice(validator: Validator) -> None:
    body = rb'{"apiVersion":"example.org/v1","kind":"Widget","spec":{"\ud800":1,"\ud801":1}}'
    messages = [each.message for each in validator.validate(body).violations]
    assert 'duplicate field "spec.\ufffd"' in messages


@pytest.mark.parametrize("name", ["Kind", "KIND", "kINd"])
def test_kind_of_a_custom_resource_is_written_in_lower_case(validator: Validator, name: str) -> None:
    body = b'{"apiVersion":"example.org/v1","%s":"Widget","metadata":{"name":"a"}}' % name.encode()
    assert validator.validate(body).fatal == f"Object 'Kind' is missing in '{body.decode()}'"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            b'{"apiVersion":null,"kind":"Widget","metadata":{"name":"a"}}',
            ".apiVersion accessor error: <nil> is of the type <nil>, expected string",
        ),
        (
            b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":-9223372036854775809}}',
            "json: cannot unmarshal number -9223372036854776000 into Go struct field"
            " ObjectMeta.generation of type int64",
        ),
        (b'{"Apiversion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"zz":1}', None),
    ],
)
def test_odd_head_of_custom_resource(body: bytes, said: str | None) -> None:
    """apiextensions-apiserver 0.37.2 beside: an apiVersion in another case prunes nothing."""
    validator = Validator(DocumentSet(build([definition({"type": "object"})]).documents))
    report = validator.validate(body, kind=GroupVersionKind("example.com", "v1", "Widget"))
    assert report.fatal == said
    assert report.strict_errors == ()


LIMITS = {
    "components": {
        "schemas": {
            "io.k8s.api.core.v1.Limits": {
                "type": "object",
                "properties": {
                    "cpu": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
                    "port": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
                    "count": {"type": "integer", "format": "int64"},
                    "text": {"type": "string"},
                },
                "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Limits"}],
            }
        }
    }
}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (rb'"text":"\u0031","cpu":"1"', None),
        (rb'"cpu":"1","text":"\u0031"', None),
        (rb'"cpu":"\u0031","text":"1"', QUANTITY_FORMAT),
        (rb'"\u0063pu":"1\u0047i"', QUANTITY_FORMAT),
        (rb'"cpu":"\\\\u0031"', QUANTITY_FORMAT),
        (rb'"port":-0', None),
        (
            rb'"port":-0.0',
            "json: cannot unmarshal number -0.0 into Go struct field Limits.port of type int32",
        ),
        (b"count: -9223372036854774784.0", None),
        (
            b"count: -9223372036854775809",
            "json: cannot unmarshal number -9223372036854776000 into Go struct field"
            " Limits.count of type int64",
        ),
    ],
)
def test_numbers_and_quantities_as_they_are_written(fields: bytes, said: str | None) -> None:
    """apimachinery 0.37.2: resource.Quantity reads the JSON text itself, with its escapes."""
    validator = Validator(DocumentSet({GroupVersion("api/v1"): LIMITS}))
    is_json = fields.startswith(b'"')
    head = b'{"apiVersion":"v1","kind":"Limits",%s}' if is_json else b"apiVersion: v1\nkind: Limits\n%s\n"
    media_type = "application/json" if is_json else "application/yaml"
    assert validator.validate(head % fields, media_type).fatal == said


def test_kind_of_no_schema_is_quoted_as_go_does() -> None:
    report = Validator(DocumentSet({})).validate(b'{"apiVersion":"v1","kind":"a\\n\\u2028"}')
    assert report.fatal == 'no kind "a\\n\\u2028" is registered for version "v1"'


def test_broken_syntax_is_said_before_what_cannot_be_decoded() -> None:
    """go-yaml's parser has the whole document before a tag or a key is decoded."""
    validator = Validator(DocumentSet({}))
    report = validator.validate(b"kind: A\n[a]: 1\nb: c: d\n", "application/yaml")
    assert report.fatal == "yaml: line 3: mapping values are not allowed in this context"
    assert validator.validate(b"kind: *x\nb: c: d\n", "application/yaml").fatal == (
        "yaml: unknown anchor 'x' referenced"
    )


def with_escapes(body: bytes) -> bytes:
    """Each character of each text as an escape, keys included."""

    def escaped(text: re.Match[str]) -> str:
        return '"' + "".join(f"\\u{ord(each):04x}" for each in text[1]) + '"'

    return re.sub(r'"([^"\\]*)"', escaped, body.decode()).encode()


def test_escapes_change_nothing_in_a_custom_resource(validator: Validator) -> None:
    spec = {"pattern": "abcd", "map": {"a": 1, "b": "c"}, "set": ["a", "b", "a"], "port": "a", "c": 1}
    value = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "A_"}, "spec": spec}
    body = json.dumps(value).encode()
    reports = [validator.validate(each) for each in (body, with_escapes(body))]
    plain, other = ([(each.path, each.message) for each in report.violations] for report in reports)
    assert plain == other
    assert len(plain) > 3


QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
BOXES: dict[str, Any] = {
    "openapi": "3.0.0",
    "paths": {},
    "components": {
        "schemas": {
            QUANTITY: {"type": "string"},
            "com.example.v1.Box": {
                "type": "object",
                "properties": {
                    "size": {"$ref": f"#/components/schemas/{QUANTITY}"},
                    "at": {"type": "string", "format": "date-time"},
                    "port": {"type": "string", "format": "int-or-string"},
                },
                "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Box"}],
            },
        }
    },
}


@pytest.mark.parametrize(
    ("fields", "is_taken"),
    [
        (r'"size": "100Mi"', True),
        (r'"size": " 100Mi "', True),
        (r'"size": "10\u0030Mi"', False),
        (r'"size": "\u0031"', False),
        (r'"size": "100\u0020"', False),
        (r'"size": "1\u002e5"', False),
        (r'"size": "100Mi", "port": "\u0061"', True),
        ('"port": -0', True),
        (r'"at": "2020-01-01T00:00:00\u005a", "port": "\u0061"', True),
    ],
)
def test_quantities_are_read_as_they_are_written(fields: str, is_taken: bool) -> None:
    """Quantity.UnmarshalJSON reads the bytes between the quotes; Time and IntOrString have them decoded."""
    body = f'{{"apiVersion": "example.com/v1", "kind": "Box", {fields}}}'
    box_validator = Validator(DocumentSet({GroupVersion("apis/example.com/v1"): BOXES}))
    assert (box_validator.validate(body.encode()).fatal is None) is is_taken
