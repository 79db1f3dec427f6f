"""The encodings of an OpenAPI v3 document, and a cache of encoded parts, which documents share.

``media_types.FORMS`` has a row for each. Codecs depend on documents, limits and losses; they know nothing of
a document's meaning. A codec is imported when it is used: who needs one encoding does not load the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from importlib import import_module
from typing import Any, Final

import orjson

from specmux_converters import media_types
from specmux_converters.document import Document, Limits
from specmux_converters.media_types import FORMS, MediaType
from specmux_converters.memory import in_own_memory

__all__ = ["Fragments", "decode", "encode", "recognise"]

_JSON_ONLY: Final = (
    orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_PREFIXES: Final = (
    (re.compile(rb"[ \t\r\n]*\{"), media_types.JSON),
    (re.compile(media_types.SELF_DESCRIBED_CBOR), media_types.CBOR),
    (re.compile(re.escape(media_types.ENVELOPE_MAGIC)), media_types.KUBERNETES_PROTOBUF),
    (re.compile(rb"\n[\x03-\x20]3\.[0-9]"), media_types.PROTOBUF),
    (re.compile(rb"\n\x032\.0"), media_types.PROTOBUF_V2),
)


class Fragments:
    """Encoded parts by kind and content, within ``max_bytes``.

    Only content counts, never an object's identity: a lookup costs one ``orjson.dumps``, little compared to
    encoding, and a part that is modified later is simply another part. Not thread-safe.
    """

    def __init__(self, *, max_bytes: int = 64 * 1024 * 1024) -> None:
        self.max_bytes = max_bytes
        self._young: dict[tuple[Hashable, bytes], bytes] = {}
        self._old: dict[tuple[Hashable, bytes], bytes] = {}
        self._young_bytes = 0

    def get(self, kind: Hashable, value: Any, encode: Callable[[Any], bytes]) -> bytes:
        """The encoded ``value``; calls ``encode`` if it is not cached.

        Raises TypeError for what orjson cannot serialize: values that are not JSON, or more than 254 levels.
        """
        part = (kind, orjson.dumps(value, None, _JSON_ONLY))
        encoded = self._young.get(part)
        if encoded is not None:
            return encoded
        encoded = self._old.get(part)
        if encoded is None:
            encoded = encode(value)
        self._keep(kind, part[1], encoded)
        return encoded

    def _keep(self, kind: Hashable, text: bytes, encoded: bytes) -> None:
        # Two generations: parts not used during the younger one are dropped, without bookkeeping per part.
        size = len(text) + len(encoded)
        if self._young_bytes + size > self.max_bytes // 2:
            self._old, self._young, self._young_bytes = self._young, {}, 0
        if size <= self.max_bytes // 2:
            self._young[kind, in_own_memory(text)] = encoded
            self._young_bytes += size


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
