"""The envelope of Kubernetes objects in Protobuf: "k8s", a zero byte, then ``runtime.Unknown``
(k8s.io/apimachinery/pkg/runtime/generated.proto). It is only opened, never written.

Upstream ignores encoding and type of the content; the design defines both as in HTTP, and asks clients to
refuse unknown ones.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from specmux_converters.codecs import object_cbor
from specmux_converters.codecs.gnostic import read_facts
from specmux_converters.codecs.protobuf_reader import Read, compile_reader, read_message
from specmux_converters.document import DEFAULT_LIMITS, Limits, parse
from specmux_converters.errors import InvalidDocument, cut
from specmux_converters.gzip_coding import gunzip
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.media_types import (
    CBOR,
    ENVELOPE_MAGIC,
    JSON,
    KUBERNETES_PROTOBUF,
    SELF_DESCRIBED_CBOR,
    MediaType,
    essence,
)

_FACTS: Final = {
    "Unknown": "1 typeMeta TypeMeta, 2 raw bytes, 3 contentEncoding string, 4 contentType string",
    "TypeMeta": "1 apiVersion string, 2 kind string",
}


_IS_PROTOBUF: Final = ("", KUBERNETES_PROTOBUF)


@dataclass(frozen=True, slots=True)
class Envelope:
    api_version: str
    kind: str
    raw: bytes
    """The object itself, without its content encoding."""
    content_encoding: str
    """The content encoding as received."""
    content_type: str
    """"" means Protobuf, whose messages are not supported here."""
    value: Any = None
    """The object, if it is JSON or CBOR."""


def open_envelope(data: bytes, *, limits: Limits = DEFAULT_LIMITS) -> Envelope:
    """The object in an envelope. Raises InvalidDocument if ``data`` is not one, or has an unknown encoding or
    type; LimitExceeded beyond ``limits``."""
    if not data.startswith(ENVELOPE_MAGIC):
        raise InvalidDocument("not a Kubernetes Protobuf object: it does not begin with k8s and a zero byte")
    unknown = read_message(data[len(ENVELOPE_MAGIC) :], _reader(), limits)
    type_meta = unknown.get("typeMeta", {})
    encoding, content_type = unknown.get("contentEncoding", ""), unknown.get("contentType", "")
    raw = _decode_content(unknown.get("raw", b""), encoding, limits)
    value = None if content_type in _IS_PROTOBUF else read_raw(raw, content_type=content_type, limits=limits)
    api_version, kind = type_meta.get("apiVersion", ""), type_meta.get("kind", "")
    return Envelope(api_version, kind, raw, encoding, content_type, value)


def _decode_content(raw: bytes, encoding: str, limits: Limits) -> bytes:
    match encoding.lower():
        case "" | "identity":
            return raw
        case "gzip":
            return gunzip(raw, max_bytes=limits.max_bytes)
    raise InvalidDocument(f"the content encoding {cut(encoding)} is not known; gzip is")


@functools.cache
def _reader() -> Read:
    return compile_reader(read_facts(_FACTS), "Unknown")


_JSON_BEGINNINGS: Final = b'\t\r\n {[ntf"-0123456789'


def guess_content_type(raw: bytes) -> MediaType:
    """Raises InvalidDocument if ``raw`` starts neither as JSON nor as self-described CBOR."""
    if raw.startswith(SELF_DESCRIBED_CBOR):
        return CBOR
    if raw[:1] and raw[:1] in _JSON_BEGINNINGS:
        return JSON
    raise InvalidDocument("neither JSON nor self-described CBOR")


def read_raw(raw: bytes, *, content_type: str = "", limits: Limits = DEFAULT_LIMITS) -> Any:
    """The value in ``raw``; without a ``content_type`` its first byte decides. Raises InvalidDocument for
    types other than JSON and CBOR, LimitExceeded."""
    match essence(content_type) or guess_content_type(raw):
        case media_type if media_type == CBOR:
            return object_cbor.decode_object(raw, limits=limits)
        case media_type if media_type == JSON:
            whole = parse(b'{"":' + raw + b"}", limits=limits)  # any value is accepted, not just an object
            if len(whole) == 1:
                return whole[""]
            raise InvalidDocument("not JSON: a comma follows the value")
    raise InvalidDocument(f"the content type {cut(content_type)} is neither {JSON} nor {CBOR}")
