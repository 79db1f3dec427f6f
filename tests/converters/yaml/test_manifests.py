"""YAML as kubectl and Helm read it. The expected values are sigs.k8s.io/yaml's (v1.6.0)."""

from __future__ import annotations

from typing import Any

import pytest

from shared_data import DATA, read
from specmux_converters.crd import build
from specmux_converters.errors import InvalidDocument
from specmux_converters.losses import Loss
from specmux_converters.recognise import DocumentKind, recognise
from specmux_converters.yaml import parse_yaml_stream


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, True) for word in ("y", "Y", "yes", "Yes", "on", "ON", "true")),
        *((word, False) for word in ("n", "N", "no", "NO", "off", "Off", "FALSE")),
        *((word, word) for word in ("yEs", "oN", "nO", "=", "1:30", "2001-12-14", "0o+7", "1e400", "._1")),
        ("~", None),
        ("0644", 420),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0b11", -3),
        ("1_000", 1000),
        ("08", 8),
        ("1.5e3", 1500),
        ("1e3", 1000),
        ("0.5", 0.5),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", float(2**64)),
        ("'yes'", "yes"),
        ("!!str yes", "yes"),
    ],
)
def test_values_of_a_manifest(text: str, value: Any) -> None:
    (document,) = parse_yaml_stream(f"a: {text}\n".encode(), is_manifest=True)
    assert repr(document["a"]) == repr(value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("y", "true"),
        ("off", "false"),
        ("0644", "420"),
        ("1.0", "1"),
        ("1000000.0", "1e+06"),
        ("100000.0", "100000"),
        ("16777217.0", "1.6777216e+07"),
        ("0.1", "0.1"),
        ("1e-5", "1e-05"),
        ("1e39", ".inf"),
        ("-.Inf", "-.inf"),
        (".NaN", ".nan"),
        ("2001-12-14", "2001-12-14"),
        ("'y'", "y"),
    ],
)
def test_keys_of_a_manifest(text: str, name: str) -> None:
    assert parse_yaml_stream(f"{text}: 1\n".encode(), is_manifest=True) == ({name: 1},)


@pytest.mark.parametrize("text", ["~: 1", "18446744073709551615: 1", "a: .inf", "a: [.nan]"])
def test_what_no_json_says_is_refused(text: str) -> None:
    with pytest.raises(InvalidDocument):
        parse_yaml_stream(text.encode(), is_manifest=True)


def test_keys_that_are_one_to_kubectl_are_reported() -> None:
    for text in (b"p: {y: 1, on: 2}", b"p: {y: 1, y: 2}"):
        losses: list[Loss] = []
        assert parse_yaml_stream(text, is_manifest=True, losses=losses) == ({"p": {"true": 2}},)
        assert [(loss.pointer, loss.construct) for loss in losses] == [("/p/true", "key")]


MANIFEST = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec: {names: {plural: y, kind: "yes"}}
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_manifest_is_told_from_a_document_by_what_it_holds(encoding: str) -> None:
    found = recognise(MANIFEST.encode(encoding))
    assert found.kind is DocumentKind.CRDS
    assert found.documents[0]["spec"]["names"] == {"plural": True, "kind": "yes"}
    document = f"swagger: '2.0'\ninfo: {{title: y, description: CustomResourceDefinition of {encoding}}}\n"
    assert recognise(document.encode(encoding)).documents[0]["info"]["title"] == "y"


def test_13_a_definition_says_what_the_cluster_would() -> None:
    found = recognise(read(DATA / "defects/13-crd-yaml-1.1.yaml"))
    built = build(found.documents)
    schema = built.documents["apis/example.com/v1"]["components"]["schemas"]["com.example.v1.Foo"]
    properties = schema["properties"]
    assert properties["mode"]["default"] == 420
    assert properties["true"] == {"type": "boolean", "default": True}
    assert {"y", "on"}.isdisjoint(properties)
    assert [loss.construct for loss in found.losses] == ["key"]
