"""The envelope of Kubernetes objects in Protobuf: "k8s", a zero byte, then ``runtime.Unknown``
(k8s.io/apimachinery/pkg/runtime/generated.proto). Opened to see what is inside, never written."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from specmux_converters.codecs.gnostic import read_facts
from specmux_converters.codecs.protobuf_reader import compile_reader, read_message
from specmux_converters.codecs.protobuf_scalars import Read
from specmux_converters.document import Limits
from specmux_converters.errors import InvalidDocument
from specmux_converters.media_types import MediaType

MAGIC: Final = b"k8s\0"

KUBERNETES_PROTOBUF: Final = MediaType("application/vnd.kubernetes.protobuf")

_FACTS: Final = {
    "Unknown": "1 typeMeta TypeMeta, 2 raw bytes, 3 contentEncoding string, 4 contentType string",
    "TypeMeta": "1 apiVersion string, 2 kind string",
}


@dataclass(frozen=True, slots=True)
class Envelope:
    api_version: str
    kind: str
    raw: bytes
    """The object itself; Protobuf where ``content_type`` is empty."""
    content_encoding: str
    content_type: str


def open_envelope(data: bytes, *, limits: Limits) -> Envelope:
    """Raises InvalidDocument where ``data`` is no envelope, LimitExceeded past ``limits``."""
    if not data.startswith(MAGIC):
        raise InvalidDocument("not a Kubernetes Protobuf object: it does not begin with k8s and a zero byte")
    unknown = read_message(data[len(MAGIC) :], _reader(), limits)
    type_meta = unknown.get("typeMeta", {})
    return Envelope(
        type_meta.get("apiVersion", ""),
        type_meta.get("kind", ""),
        unknown.get("raw", b""),
        unknown.get("contentEncoding", ""),
        unknown.get("contentType", ""),
    )


@functools.cache
def _reader() -> Read:
    return compile_reader(read_facts(_FACTS), "Unknown")
