"""Documents of a file before they are checked: their coding, their group-versions, and which are objects."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from specmux_converters.go.text import Number
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Validator
from specmux_tools.validation.decoding.body import read
from specmux_tools.validation.decoding.manifests import group_versions_in, is_object
from specmux_tools.validation.decoding.streams import parts_of
from specmux_tools.validation.errors import Undecodable

RECORDED = Path(__file__).parent / "recorded" / "streams.jsonl.gz"
OF_YAML = "error converting YAML to JSON: "


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


def test_streams_are_read_as_kubectl_reads_them(tally: Callable[[str, int], None]) -> None:
    """2,000 odd streams, with what apimachinery 0.37.2 reads of them (``record_streams.py``)."""
    cases = [orjson.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    wrong, refused = [], 0
    for case in cases:
        objects, error = objects_and_error(case["stream"].encode())
        wanted, refusal = case["objects"], case.get("error")
        refused += refusal is not None
        if refusal is None:
            is_right = error is None and objects == wanted
        else:  # kubectl does not see the object above a separator that it refuses
            is_right = error is not None and objects[: len(wanted)] == wanted
        # What is neither JSON nor YAML is told by JSON's words there, by those of an apiserver here.
        if refusal is not None and not case["stream"].lstrip().startswith("{"):
            is_right = is_right and error == refusal.removeprefix(OF_YAML)
        if not is_right:
            wrong.append(f"{case!a}: {objects!a} {error!a}")
    tally("streams recorded from apimachinery", len(cases))
    assert (len(cases), 500 < refused < 1500) == (2000, True)
    assert not wrong, "\n".join(wrong)


def objects_and_error(data: bytes) -> tuple[list[Any], str | None]:
    objects = []
    for part in parts_of(data):
        try:
            objects.append(plain(read(part.data, part.format).value))
        except Undecodable as error:
            return objects, error.text
    return objects, None


def plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case Number():
            return float(value)
    return value


@pytest.mark.parametrize("line_break", ["\r", "\x85", "\u2028", "\u2029"])
def test_nothing_vanishes_behind_a_comment(line_break: str) -> None:
    """YAML 1.1 ends a line there."""
    assert objects_and_error(f"# c{line_break}a: 1\n".encode()) == ([{"a": 1}], None)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('{"a": 1}\n---\n\nb: 2\n---\nc: 3\n', [0, 1, 5]),
        ('\n\n{"a": 1}\n\n{"b": 2}\n', [0, 4]),
        ("---\na: 1\n---\nb: 2\n", [0, 3]),
    ],
)
def test_parts_know_the_lines_before_them(text: str, lines: list[int]) -> None:
    assert [part.line for part in parts_of(text.encode())] == lines
