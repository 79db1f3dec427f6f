from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_data import DATA, files
from specmux_converters.codecs.envelope import Envelope, open_envelope
from specmux_converters.document import Limits
from specmux_converters.errors import ConverterError, InvalidDocument, LimitExceeded

LIMITS = Limits()


def test_an_envelope_is_opened_when_all_its_fields_are_there() -> None:
    data = (
        b"k8s\0"
        + b"\x0a\x0d\x0a\x02v1\x12\x07PodList"
        + b"\x12\x03\xff\x00\x01"
        + b"\x1a\x04gzip"
        + b"\x22\x01t"
    )
    assert open_envelope(data, limits=LIMITS) == Envelope("v1", "PodList", b"\xff\0\1", "gzip", "t")


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
