"""Values in an encoding of their own, as apimachinery's RawExtension has them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from specmux_converters.codecs.object_cbor import encode_object
from specmux_converters.codecs.object_envelope import guess_content_type, read_raw
from specmux_converters.errors import InvalidDocument
from specmux_converters.media_types import CBOR, JSON

VALUES = [{"a": [1, 1.5, None, True]}, [], "text", -5, None, {"\u00e9": {}}]


@pytest.mark.parametrize("value", VALUES)
def test_either_encoding_is_read_by_its_beginning(value: Any) -> None:
    as_json, as_cbor = orjson.dumps(value), encode_object(value)
    assert (guess_content_type(as_json), guess_content_type(as_cbor)) == (JSON, CBOR)
    assert read_raw(as_json) == read_raw(as_cbor) == value


@pytest.mark.parametrize("raw", [b"", b"\xa0", b"k8s\0", b'1,"b":2', b"{", b"a"])
def test_what_is_neither_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidDocument):
        read_raw(raw)
