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
    """Raises Unrepresentable for values without a field in gnostic's messages."""
    return write_document(document, fragments or Fragments())


def decode(data: bytes, *, limits: Limits) -> Document:
    """Protobuf omits false, 0 and "" of optional keys, and most siblings of a ``$ref``; so does the result. A
    default that was not a scalar becomes null. ``encode`` turns the result into the same bytes.

    Raises InvalidDocument for malformed bytes, LimitExceeded past ``limits``.
    """
    return cast("Document", read_message(data, _reader(), limits))


@functools.cache
def _reader() -> Read:
    return compile_reader(read_facts(facts("v3")), "Document")
