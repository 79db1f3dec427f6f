from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from data.built_in_swagger import swagger_of
from shared_data import DATA, files, load, read
from specmux_converters import codecs, media_types
from specmux_converters.codecs import Fragments, protobuf_v2, recognise
from specmux_converters.document import Limits
from specmux_converters.errors import ConverterError, InvalidDocument, LimitExceeded
from specmux_converters.media_types import FORMS, MediaType

LIMITS = Limits()
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.0",
    "info": {"version": "v", "title": "t"},
    "paths": {"/b": {}, "/a": {"get": {"responses": {"200": {"description": "é"}}}}},
    "components": {"schemas": {"A": {"type": "object", "enum": [1, "on", None]}}},
}


def test_the_table_is_keyed_by_media_type_when_looked_up() -> None:
    assert list(FORMS) == [media_types.JSON, media_types.PROTOBUF, media_types.CBOR]
    assert all(codec.media_type == media_type for media_type, codec in FORMS.items())
    assert [codec.name for codec in FORMS.values()] == ["json", "protobuf", "cbor"]
    assert [codec.suffix for codec in FORMS.values()] == [".json", ".pb", ".cbor"]


@pytest.mark.parametrize("media_type", FORMS)
def test_a_document_comes_back_when_it_was_encoded(media_type: MediaType) -> None:
    data = codecs.encode(DOCUMENT, media_type)
    assert codecs.decode(data, media_type, limits=LIMITS) == DOCUMENT
    assert recognise(data) == media_type


@pytest.mark.parametrize("media_type", FORMS)
def test_bytes_are_the_same_when_fragments_are_kept(media_type: MediaType) -> None:
    fragments = Fragments()
    alone = codecs.encode(DOCUMENT, media_type)
    assert [codecs.encode(DOCUMENT, media_type, fragments=fragments) for _ in range(3)] == [alone] * 3


@pytest.mark.parametrize("media_type", FORMS)
@pytest.mark.parametrize("data", [b"", b"\0", b"[]", b"null", b"{", b"\xff" * 20, b"k8s\0"])
def test_bytes_are_refused_when_they_are_no_document(media_type: MediaType, data: bytes) -> None:
    if not (data == b"" and media_type == media_types.PROTOBUF):  # nothing is an empty message
        with pytest.raises(InvalidDocument):
            codecs.decode(data, media_type, limits=LIMITS)


@pytest.mark.parametrize("media_type", FORMS)
def test_bytes_are_refused_when_there_are_too_many(media_type: MediaType) -> None:
    data = codecs.encode(DOCUMENT, media_type)
    with pytest.raises(LimitExceeded):
        codecs.decode(data, media_type, limits=Limits(max_bytes=len(data) - 1))


def test_key_error_is_raised_when_there_is_no_such_encoding() -> None:
    with pytest.raises(KeyError):
        codecs.encode(DOCUMENT, MediaType("text/html"))


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (b"{}", media_types.JSON),
        (b' \t\r\n{"a"', media_types.JSON),
        (b"\xd9\xd9\xf7\xa0", media_types.CBOR),
        (b"k8s\0\n\0", media_types.KUBERNETES_PROTOBUF),
        (b"\n\x053.0.3\x12", media_types.PROTOBUF),
        (b"\n\x032.0\x12", media_types.PROTOBUF_V2),
        (b"openapi: 3.0.0", None),
        (b"\xa0", None),
        (b"[]", None),
        (b"k8s", None),
        (b"", None),
    ],
)
def test_bytes_are_recognised_when_their_beginning_says_what_they_are(
    data: bytes, media_type: MediaType | None
) -> None:
    assert recognise(data) == media_type


@pytest.mark.parametrize("path", files(DATA / "k8s-serialized-objects", "**/*.pb"))
def test_kubernetes_objects_are_recognised_when_in_their_envelope(path: Path) -> None:
    assert recognise(path.read_bytes()) == media_types.KUBERNETES_PROTOBUF


def test_swagger_of_a_whole_release_is_recognised_when_it_is_protobuf() -> None:
    captured = DATA / "openapi-v2-protobuf" / "v1_21_2" / "swagger.pb.gz"
    data = read(captured) if captured.exists() else protobuf_v2.encode(swagger_of("1.35"))
    assert recognise(data) == media_types.PROTOBUF_V2


@pytest.mark.long
def test_shared_fragments_change_no_byte_when_all_documents_go_through_them() -> None:
    """One small memo for every release, so that parts are shared, fall out and come back."""
    fragments = Fragments(max_bytes=256 * 1024)
    count = 0
    for path in sorted((DATA / "k8s-pairs").glob("*/v3/**/*.json*")):
        document = load(path)
        for media_type in (media_types.PROTOBUF, media_types.CBOR):
            assert codecs.encode(document, media_type, fragments=fragments) == codecs.encode(
                document, media_type
            )
            count += 1
    assert count > 200


@pytest.mark.parametrize("path", files(DATA / "k8s-pairs" / "1.35" / "v3", "**/*.json*"))
def test_json_is_the_same_text_when_it_passes_through_cbor_and_sorts(path: Path) -> None:
    document = load(path)
    back = codecs.decode(codecs.encode(document, media_types.CBOR), media_types.CBOR, limits=LIMITS)
    sort = orjson.OPT_SORT_KEYS
    assert orjson.dumps(back, option=sort) == orjson.dumps(document, option=sort)
    assert codecs.encode(document, media_types.JSON) == orjson.dumps(document)


@pytest.mark.parametrize("path", files(DATA / "k8s-pairs" / "1.35" / "v3" / "apis" / "batch", "**/*.json*"))
@pytest.mark.parametrize("media_type", FORMS)
def test_only_the_packages_errors_come_out_when_real_bytes_are_changed(
    media_type: MediaType, path: Path
) -> None:
    original = codecs.encode(load(path), media_type)
    source = random.Random(8)
    refused = 0
    for _ in range(60):
        data = bytearray(original)
        for _ in range(source.randint(1, 3)):
            place = source.randrange(len(data))
            data[place : place + source.randint(0, 3)] = source.randbytes(source.randint(0, 3))
        try:
            codecs.decode(bytes(data), media_type, limits=LIMITS)
        except ConverterError:
            refused += 1
    assert refused > 10
