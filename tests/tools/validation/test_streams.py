"""Documents of a file before they are checked: their coding, their group-versions, and which are objects."""

from __future__ import annotations

import pytest

from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Validator
from specmux_tools.validation.decoding.manifests import group_versions_in, is_object
from specmux_tools.validation.decoding.streams import parts_of


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-be", "utf-16-le", "utf-8-sig"])
def test_codings_with_a_mark_are_read_as_utf_8(coding: str) -> None:
    text = "apiVersion: apps/v1\nkind: Deployment\n---\napiVersion: batch/v1\nkind: Job\n"
    mark = {"utf-16-be": b"\xfe\xff", "utf-16-le": b"\xff\xfe"}.get(coding, b"")
    parts = list(parts_of(mark + text.encode(coding)))
    assert [list(group_versions_in(part)) for part in parts] == [[("apps", "v1")], [("batch", "v1")]]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("apiVersion: v1\nkind: Pod\n", True),
        ("apiVersion: v1\nmetadata: {name: a}\nspec: {}\n", True),
        ("apiVersion: v1\nkind: Pod\nmetadata: {{name: a}\n", True),
        ('{"apiVersion": "v1", "kind": "Pod",}', True),
        ("kind: Pod\nmetadata: {name: a}\n", True),
        ("replicas: 1\n", False),
        ("apiVersion: v2\nname: chart\n", False),
        ("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", False),
        ('{"name": "shop"}', False),
        ("{\n  // comments\n}\n", False),
        ("- a\n- b\n", False),
        ("a: !unknown [", False),
    ],
)
def test_what_means_to_be_an_object(text: str, is_one: bool) -> None:
    assert [is_object(part) for part in parts_of(text.encode())] == [is_one]


def test_protobuf_is_said_to_be_what_it_is() -> None:
    type_meta = b"\x0a\x02v1\x12\x09ConfigMap"
    data = b"k8s\0" + b"\x0a" + bytes([len(type_meta)]) + type_meta + b"\x12\x00"
    (part,) = parts_of(data)
    assert list(group_versions_in(part)) == []
    report = Validator(DocumentSet({})).validate(data, "application/vnd.kubernetes.protobuf")
    assert report.fatal == (
        f"field validation is not defined for Protobuf (KEP-2885); kind ConfigMap of v1, {len(data)} bytes"
    )
