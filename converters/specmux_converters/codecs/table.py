"""The encodings of an OpenAPI v3 document.

A new encoding is a module, a row of ``CODECS`` and a media type; negotiation, caching and output list their
own media types. Codecs depend on documents, limits and losses; they know nothing of a document's meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

from specmux_converters import media_types
from specmux_converters.codecs import cbor, plain_json, protobuf_v3
from specmux_converters.codecs.fragments import Fragments
from specmux_converters.document import Document, Limits
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.media_types import MediaType


class Encode(Protocol):
    def __call__(self, document: Document, *, fragments: Fragments | None = None) -> bytes: ...


class Decode(Protocol):
    def __call__(self, data: bytes, *, limits: Limits) -> Document: ...


@dataclass(frozen=True, slots=True)
class Codec:
    """An encoding. ``encode`` raises Unrepresentable, ``decode`` InvalidDocument and LimitExceeded."""

    name: str
    media_type: MediaType
    suffix: str
    """The suffix of its files, including the dot."""
    encode: Encode
    decode: Decode


CODECS: Final[Mapping[MediaType, Codec]] = MappingProxyType(
    {
        codec.media_type: codec
        for codec in (
            Codec("json", media_types.JSON, ".json", plain_json.encode, plain_json.decode),
            Codec("protobuf", media_types.PROTOBUF, ".pb", protobuf_v3.encode, protobuf_v3.decode),
            Codec("cbor", media_types.CBOR, ".cbor", cbor.encode, cbor.decode),
        )
    }
)


_PREFIXES: Final = (
    (re.compile(rb"[ \t\r\n]*\{"), media_types.JSON),
    (re.compile(cbor.SELF_DESCRIBED), media_types.CBOR),
    (re.compile(re.escape(media_types.ENVELOPE_MAGIC)), media_types.KUBERNETES_PROTOBUF),
    (re.compile(rb"\n[\x03-\x20]3\.[0-9]"), media_types.PROTOBUF),
    (re.compile(rb"\n\x032\.0"), media_types.PROTOBUF_V2),
)


def encode(document: Document, media_type: MediaType, *, fragments: Fragments | None = None) -> bytes:
    """The document's bytes; encoded parts are reused from ``fragments``.

    Raises KeyError for a media type without a codec, and Unrepresentable if the encoding cannot represent a
    part.
    """
    return CODECS[media_type].encode(document, fragments=fragments)


def decode(data: bytes, media_type: MediaType, *, limits: Limits) -> Document:
    """Raises KeyError for a media type without a codec, and as ``Codec.decode``."""
    return CODECS[media_type].decode(data, limits=limits)


def recognise(data: bytes) -> MediaType | None:
    """The media type of ``data`` by its first bytes: one of CODECS, Swagger 2.0 as Protobuf, or a Kubernetes
    object in its Protobuf envelope ("k8s" and a zero byte). None if undetermined, as for YAML."""
    return next((media_type for prefix, media_type in _PREFIXES if prefix.match(data)), None)
