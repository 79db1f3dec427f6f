"""OpenAPI v3 documents as Protobuf: gnostic's openapi.v3.Document, as kube-apiserver serves it."""

from __future__ import annotations

import functools
from typing import cast

from specmux_converters.codecs.fragments import Fragments
from specmux_converters.codecs.gnostic import facts, read_facts
from specmux_converters.codecs.protobuf_reader import compile_reader, read_message
from specmux_converters.codecs.protobuf_scalars import Read
from specmux_converters.codecs.protobuf_writer import write_document
from specmux_converters.document import Document, Limits


def encode(document: Document, *, fragments: Fragments | None = None) -> bytes:
    """Raises Unrepresentable for what gnostic's messages have no place for."""
    return write_document(document, fragments or Fragments())


def decode(data: bytes, *, limits: Limits) -> Document:
    """What Protobuf does not carry stays away: false, 0 and "" of keys that need not be there, most keys
    beside a ``$ref``. A default that was no scalar is null. ``encode`` makes the same bytes of the result.

    Raises InvalidDocument for what is not such a message, LimitExceeded past ``limits``.
    """
    return cast("Document", read_message(data, _reader(), limits))


@functools.cache
def _reader() -> Read:
    return compile_reader(read_facts(facts("v3")), "Document")
