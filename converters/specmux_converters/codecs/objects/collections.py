"""Stream lists of objects as JSON or CBOR (KEP-4222, KEP-5116): only one piece and one item are in memory,
however many items there are.

The bytes equal those of a list that is encoded at once: CBOR sorts its names, and states the number of items
before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from specmux_converters.codecs.cbor_writer import ARRAY, MAP, item_head
from specmux_converters.codecs.objects import cbor
from specmux_converters.errors import InvalidArgument, Unrepresentable, cut
from specmux_converters.media_types import CBOR, JSON, SELF_DESCRIBED_CBOR, MediaType

PIECE: Final = 64 * 1024
_ITEMS: Final = "items"


def list_pieces(
    fields: Mapping[str, Any], items: Iterable[Any], *, count: int, media_type: MediaType
) -> Iterator[bytes]:
    """A list with these fields and ``count`` ``items``.

    Raises InvalidArgument for a media type other than JSON and CBOR, and at the end if the number of items
    differs; Unrepresentable for what the encoding cannot represent.
    """
    if media_type == JSON:
        return _joined(_json(fields, _counted(items, count)))
    if media_type == CBOR:
        return _joined(_cbor(fields, _counted(items, count), count))
    raise InvalidArgument(f"lists are written as {JSON} and {CBOR}, not as {cut(media_type)}")


def _json(fields: Mapping[str, Any], items: Iterator[Any]) -> Iterator[bytes]:
    """``items`` come last, as in Go."""
    try:
        yield b"{"
        for name, value in fields.items():
            if name != _ITEMS:
                yield b"%b:%b," % (orjson.dumps(name), orjson.dumps(value))
        yield b'"items":['
        for number, item in enumerate(items):
            yield b"," + orjson.dumps(item) if number else orjson.dumps(item)
        yield b"]}"
    except TypeError as error:
        raise Unrepresentable(f"JSON: {cut(str(error))}") from error


def _cbor(fields: Mapping[str, Any], items: Iterator[Any], count: int) -> Iterator[bytes]:
    names = {cbor.encode_item(name): name for name in {**fields, _ITEMS: ()}}
    yield SELF_DESCRIBED_CBOR + item_head(MAP, len(names))
    for written, name in sorted(names.items()):
        yield written
        if name != _ITEMS:
            yield cbor.encode_item(fields[name])
            continue
        yield item_head(ARRAY, count)
        yield from map(cbor.encode_item, items)


def _counted(items: Iterable[Any], count: int) -> Iterator[Any]:
    number = 0
    for number, item in enumerate(items, 1):
        if number > count:
            break
        yield item
    if number != count:
        raise InvalidArgument(f"{number} items or more, where {count} were announced")


def _joined(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Joined to larger pieces, instead of one per field."""
    piece = bytearray()
    for part in parts:
        piece += part
        if len(piece) >= PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)
