"""CBOR bodies (KEP-4222), and the index of a field, which an apiserver reports instead of its name."""

from __future__ import annotations

from functools import reduce
from operator import getitem
from typing import Any, Final

from specmux_converters.document import Limits
from specmux_converters.errors import ConverterError
from specmux_tools.validation.decoding.json_reader import MOST_DEPTH
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.report import Path

_LIMITS: Final = Limits(max_depth=MOST_DEPTH)
_GROUP_VERSION_KIND: Final = "unable to determine group/version/kind: "


def read_cbor(data: bytes) -> Any:
    """Raises Undecodable; duplicate keys have an apiserver's text, other errors our own.

    Each byte that is not UTF-8 becomes U+FFFD, as Go's patterns and lengths see it.
    """
    from specmux_converters.codecs import object_cbor  # imports all codecs, which few bodies need

    try:
        return object_cbor.without_bytes(object_cbor.decode_object(data, limits=_LIMITS))
    except ConverterError as error:
        reason = error.reason if error.reason.startswith("cbor: ") else f"cbor: {error.reason}"
        raise Undecodable(_GROUP_VERSION_KIND + reason) from error


def unknown_field_text(data: bytes, path: Path) -> str:
    """The only error of strict decoding: the index in its map of the field at ``path``, as sent."""
    *above, name = path
    fields = reduce(getitem, above, read_cbor(data))
    return f"cbor: found unknown field at map element index {list(fields).index(name)}"
