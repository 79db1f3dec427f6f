from __future__ import annotations

import json

import pytest
import yaml

from specmux_converters import codecs
from specmux_converters.errors import InvalidDocument
from specmux_converters.media_types import CBOR, JSON, PROTOBUF
from specmux_converters.recognise import DocumentKind, recognise

SWAGGER = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}}
OPENAPI = {"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {}}
CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
OTHER = {"apiVersion": "v1", "kind": "Namespace"}
ANSWER = {"apiVersion": CRD["apiVersion"], "kind": "CustomResourceDefinitionList", "items": [{}]}
"""What an apiserver answers: the items do not say what they are."""


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(SWAGGER).encode(),
        b"\xef\xbb\xbf" + json.dumps(SWAGGER).encode(),
        b"\n {" + json.dumps(SWAGGER).encode()[1:],
        yaml.safe_dump(SWAGGER).encode(),
        b"swagger: 2.0\npaths: {}\n",
        b"{swagger: '2.0', info: {title: t}}",
        b"\n\x032.0\x12\x06\n\x01t\x12\x011\x42\x00",
    ],
)
def test_swagger(data: bytes) -> None:
    found = recognise(data)
    assert found.kind is DocumentKind.SWAGGER_2
    assert len(found.documents) == 1


@pytest.mark.parametrize("media_type", [JSON, CBOR, PROTOBUF])
def test_openapi_in_each_encoding(media_type: str) -> None:
    found = recognise(codecs.encode(OPENAPI, media_type))  # type: ignore[arg-type]
    assert (found.kind, found.documents) == (DocumentKind.OPENAPI_3, (OPENAPI,))


def test_openapi_in_yaml_keeps_its_key_order() -> None:
    found = recognise(b"paths: {}\nopenapi: 3.0.3\ninfo: {version: v, title: t}\n")
    assert list(found.documents[0]) == ["paths", "openapi", "info"]
    assert list(found.documents[0]["info"]) == ["version", "title"]


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (json.dumps(CRD).encode(), 1),
        (yaml.safe_dump_all([CRD, OTHER, CRD]).encode(), 2),
        (json.dumps({"kind": "List", "items": [CRD, OTHER, CRD, CRD]}).encode(), 3),
        (yaml.safe_dump_all([{"kind": "CustomResourceDefinitionList", "items": [CRD]}, OTHER]).encode(), 1),
        (json.dumps(ANSWER).encode(), 1),
    ],
)
def test_crds_among_manifests(data: bytes, count: int) -> None:
    found = recognise(data)
    assert found.kind is DocumentKind.CRDS
    assert found.documents == (CRD,) * count


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "0 documents"),
        (b"hello", "not a YAML mapping"),
        (b"{}", "neither"),
        (json.dumps(OTHER).encode(), "neither"),
        (b'{"swagger": "1.2"}', "neither"),
        (b'{"openapi": 3}', "neither"),
        (b"a: 1\n---\nb: 2\n", "2 documents"),
        (b'{"swagger": "2.0",', "not JSON"),
        (b"k8s\x00\x0a\x00", "no OpenAPI document"),
        (b"\xd9\xd9\xf7\xa1", ""),
        (b"\n\x033.0\xff\xff", ""),
    ],
)
def test_refused(data: bytes, words: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        recognise(data)
    assert words in refused.value.reason
