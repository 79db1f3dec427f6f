"""Extract the templates of a cluster's documents from one of them; runs in a worker process. Pure."""

from __future__ import annotations

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.http.messages import Coding
from specmux_converters.crd import Templates, templates_of
from specmux_converters.document import Limits, parse
from specmux_converters.errors import ConverterError


def read_templates(body: bytes, coding: Coding, *, limits: Limits) -> Templates | None:
    """None if the document contains no templates, or is invalid."""
    try:
        return templates_of(parse(decode_body(body, coding, max_bytes=limits.max_bytes), limits=limits))
    except (BadCoding, TooLarge, ConverterError):
        return None
