"""Swagger 2.0 documents as Protobuf: gnostic's openapi.v2.Document, which old apiservers offer. Read only."""

from __future__ import annotations

import functools
from typing import cast

from specmux_converters.codecs import gnostic_v2
from specmux_converters.codecs.gnostic import read_facts
from specmux_converters.codecs.protobuf_reader import compile_reader, read_message
from specmux_converters.codecs.protobuf_scalars import Read
from specmux_converters.document import Document, Limits


def decode(data: bytes, *, limits: Limits) -> Document:
    """Raises InvalidDocument for what is not such a message, LimitExceeded past ``limits``."""
    return cast("Document", read_message(data, _reader(), limits))


@functools.cache
def _reader() -> Read:
    return compile_reader(read_facts(gnostic_v2.FACTS), "Document")
