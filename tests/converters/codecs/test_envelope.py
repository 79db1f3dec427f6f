from __future__ import annotations

import gzip
from pathlib import Path

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_data import DATA, files
from specmux_converters.codecs.object_envelope import Envelope, open_envelope
from specmux_converters.codecs.wire import LENGTH, key, write_delimited
from specmux_converters.document import Limits
from specmux_converters.errors import ConverterError, InvalidDocument, LimitExceeded
from specmux_converters.media_types import KUBERNETES_PROTOBUF
from specmux_converters.recognise import recognise

LIMITS = Limits()


def envelope(raw: bytes, *, encoding: str = "", content_type: str = "") -> bytes:
    fields = ((2, raw), (3, encoding.encode()), (4, content_type.encode()))
    return b"k8s\0\x0a\x0d\x0a\x02v1\x12\x07PodList" + b"".join(
        write_delimited(key(number, LENGTH), body) for number, body in fields if body
    )


def test_an_envelope_is_opened_when_all_its_fields_are_there() -> None:
    data = envelope(gzip.compress(b"\xff\0\1"), encoding="gzip", content_type=KUBERNETES_PROTOBUF)
    assert open_envelope(data) == Envelope("v1", "PodList", b"\xff\0\1", "gzip", KUBERNETES_PROTOBUF)


@pytest.mark.parametrize(
    ("raw", "content_type"),
    [
        (b'{"kind":"PodList","n":[1,1.5]}', "application/json"),
        (cbor2.dumps({b"kind": "PodList", "n": [1, 1.5]}), "application/cbor"),
        (cbor2.dumps(cbor2.CBORTag(55799, {"kind": b"PodList", "n": [1, 1.5]})), "application/cbor"),
    ],
)
@pytest.mark.parametrize("encoding", ["", "gzip", "identity"])
def test_content_is_read_by_its_type(raw: bytes, content_type: str, encoding: str) -> None:
    sent = gzip.compress(raw) if encoding == "gzip" else raw
    opened = open_envelope(envelope(sent, encoding=encoding, content_type=content_type))
    assert opened.value == {"kind": "PodList", "n": [1, 1.5]}
    assert opened.raw == raw


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"encoding": "zstd"}, "content encoding zstd is not known"),
        ({"encoding": "gzip"}, "not gzip|cut short"),
        ({"content_type": "application/yaml"}, "content type application/yaml is neither"),
        ({"content_type": "application/json"}, "not JSON|JSON"),
        ({"content_type": "application/cbor"}, "cbor: "),
    ],
)
def test_content_is_refused_when_it_is_not_what_it_says(fields: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidDocument, match=reason):
        open_envelope(envelope(b"\xff\xff", **fields))


def test_gzip_costs_no_more_than_the_bound() -> None:
    bomb = envelope(gzip.compress(bytes(4_000_000)), encoding="gzip")
    with pytest.raises(LimitExceeded):
        open_envelope(bomb, limits=Limits(max_bytes=1_000_000))


def test_document_in_an_envelope_is_read() -> None:
    """As etcd has objects without a schema."""
    document = b'{"openapi":"3.0.0","info":{"title":"t","version":"1"},"paths":{}}'
    found = recognise(envelope(document, content_type="application/json"))
    assert found.documents[0]["info"] == {"title": "t", "version": "1"}
    with pytest.raises(InvalidDocument, match=r"a Kubernetes object in Protobuf \(PodList of v1\)"):
        recognise(envelope(b"\x0a\0"))


def test_an_envelope_is_opened_when_it_is_empty() -> None:
    assert open_envelope(b"k8s\0", limits=LIMITS) == Envelope("", "", b"", "", "")


@pytest.mark.parametrize(
    "data", [b"", b"k8s", b"k8s\x01", b"{}", b"k8s\0\x0a\x05", b"k8s\0\x0a\x03\x0a\x01\xff"]
)
def test_bytes_are_refused_when_they_are_no_envelope(data: bytes) -> None:
    with pytest.raises(InvalidDocument):
        open_envelope(data, limits=LIMITS)


def test_bytes_are_refused_when_there_are_too_many() -> None:
    with pytest.raises(LimitExceeded):
        open_envelope(b"k8s\0" + b"\x12\x03abc", limits=Limits(max_bytes=4))


@pytest.mark.parametrize("path", files(DATA / "k8s-serialized-objects", "**/*.pb"))
def test_a_kubernetes_object_says_what_it_is_when_opened(path: Path) -> None:
    envelope = open_envelope(path.read_bytes(), limits=LIMITS)
    *group_version, kind = path.stem.split(".")
    if kind == "WatchEvent":  # a frame of a stream, which says nothing of itself
        group_version, kind = [], ""
    assert envelope.kind == kind
    group, _, version = ".".join(group_version).rpartition(".")
    assert envelope.api_version == (version if group in ("core", "") else f"{group}/{version}")
    assert envelope.raw


@given(st.binary(max_size=60))
def test_only_the_packages_errors_come_out_when_bytes_are_arbitrary(data: bytes) -> None:
    try:
        open_envelope(b"k8s\0" + data, limits=LIMITS)
    except ConverterError as error:
        assert error.reason
