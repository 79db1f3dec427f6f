"""The encodings of an OpenAPI v3 document.

``document_forms`` has a row for each. Codecs depend on documents, limits and losses; they know nothing of a
document's meaning. A codec is imported when it is used: who needs one encoding does not load the others.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Final

from specmux_converters import media_types
from specmux_converters.codecs.fragments import Fragments
from specmux_converters.document import Document, Limits
from specmux_converters.document_forms import FORMS
from specmux_converters.media_types import MediaType

__all__ = ["Fragments", "decode", "encode", "recognise"]

_PREFIXES: Final = (
    (re.compile(rb"[ \t\r\n]*\{"), media_types.JSON),
    (re.compile(media_types.SELF_DESCRIBED_CBOR), media_types.CBOR),
    (re.compile(re.escape(media_types.ENVELOPE_MAGIC)), media_types.KUBERNETES_PROTOBUF),
    (re.compile(rb"\n[\x03-\x20]3\.[0-9]"), media_types.PROTOBUF),
    (re.compile(rb"\n\x032\.0"), media_types.PROTOBUF_V2),
)


def encode(document: Document, media_type: MediaType, *, fragments: Fragments | None = None) -> bytes:
    """The document's bytes; encoded parts are reused from ``fragments``.

    Raises KeyError for a media type without a codec, and Unrepresentable if the encoding cannot represent a
    part.
    """
    encoded: bytes = import_module(FORMS[media_type].codec).encode(document, fragments=fragments)
    return encoded


def decode(data: bytes, media_type: MediaType, *, limits: Limits) -> Document:
    """Raises KeyError for a media type without a codec, InvalidDocument and LimitExceeded."""
    document: Document = import_module(FORMS[media_type].codec).decode(data, limits=limits)
    return document


def recognise(data: bytes) -> MediaType | None:
    """The media type of ``data`` by its first bytes: one of FORMS, Swagger 2.0 as Protobuf, or a Kubernetes
    object in its Protobuf envelope ("k8s" and a zero byte). None if undetermined, as for YAML."""
    return next((media_type for prefix, media_type in _PREFIXES if prefix.match(data)), None)
