"""Documents as JSON (RFC 8259): key order kept, no white space."""

from __future__ import annotations

import orjson

from specmux_converters.codecs.fragments import Fragments
from specmux_converters.document import Document, Limits, parse
from specmux_converters.errors import Unrepresentable, cut


def encode(document: Document, *, fragments: Fragments | None = None) -> bytes:
    """Raises Unrepresentable for what JSON has no form for. ``fragments`` has nothing to offer here: orjson
    writes a part faster than it is looked up."""
    try:
        return orjson.dumps(document)
    except TypeError as error:
        raise Unrepresentable(f"JSON: {cut(str(error))}") from error


def decode(data: bytes, *, limits: Limits) -> Document:
    """See ``document.parse``."""
    return parse(data, limits=limits)
