"""OpenAPI v3 documents as Protobuf: gnostic's openapi.v3.Document, as kube-apiserver serves it."""

from __future__ import annotations

import functools
from typing import Final, cast

from specmux_converters.codecs import Fragments
from specmux_converters.codecs.gnostic import messages_of
from specmux_converters.codecs.protobuf_fields import NAME, Write, message_field
from specmux_converters.codecs.protobuf_reader import document_reader, read_message
from specmux_converters.codecs.protobuf_writer import MessageCompiler, boolean_or, write_message
from specmux_converters.document import Document, Limits

_SHARED: Final = {
    (message, key): f"{message}.{key}"
    for message, key in (
        ("Components", "schemas"),
        ("PathItem", "parameters"),
        ("Operation", "parameters"),
        ("Operation", "requestBody"),
        ("Operation", "responses"),
    )
}
"""Fields whose values are shared by documents, or by operations of one document; each value is written
once. The name distinguishes them in ``Fragments``: another message has another field number before the
same value."""


def encode(document: Document, *, fragments: Fragments | None = None) -> bytes:
    """Raises Unrepresentable for values without a field in gnostic's messages."""
    return write_message(_document_writer(), document, fragments or Fragments())


def decode(data: bytes, *, limits: Limits) -> Document:
    """Protobuf omits false, 0 and "" of optional keys, and most siblings of a ``$ref``; so does the result. A
    default that was not a scalar becomes null. ``encode`` turns the result into the same bytes.

    Raises InvalidDocument for malformed bytes, LimitExceeded past ``limits``.
    """
    return cast("Document", read_message(data, document_reader("v3"), limits))


@functools.cache
def _document_writer() -> Write:
    return _CompilerV3(messages_of("v3"), shared=_SHARED).writers["Document"]


class _CompilerV3(MessageCompiler):
    by_hand = frozenset({"ItemsItem", "AdditionalPropertiesItem"})

    def add_by_hand(self) -> None:
        or_schema = self._or_reference("Schema")
        self.writers["ItemsItem"] = message_field(NAME, or_schema)
        self.writers["AdditionalPropertiesItem"] = boolean_or(message_field(NAME, or_schema))
