"""Documents as JSON (RFC 8259): key order kept, no white space."""

from __future__ import annotations

import orjson

from specmux_converters.codecs import Fragments
from specmux_converters.document import Document, Limits, parse
from specmux_converters.errors import Unrepresentable, cut


def encode(document: Document, *, fragments: Fragments | None = None) -> bytes:
    """Raises Unrepresentable for values outside JSON. ``fragments`` is unused: orjson writes a part faster
    than a lookup takes."""
    try:
        return orjson.dumps(document)
    except TypeError as error:
        raise Unrepresentable(f"JSON: {cut(str(error))}") from error


def decode(data: bytes, *, limits: Limits) -> Document:
    """See ``document.parse``."""
    return parse(data, limits=limits)
