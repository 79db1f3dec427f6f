"""Documents as JSON (RFC 8259): key order kept, no white space."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import orjson

from specmux_converters.document import Document, Limits, parse
from specmux_converters.errors import InvalidDocument, LimitExceeded, Unrepresentable, cut

if TYPE_CHECKING:
    from specmux_converters.codecs.fragments import Fragments


def encode(document: Document, *, fragments: Fragments | None = None) -> bytes:
    """Raises Unrepresentable for what JSON has no form for. ``fragments`` would be slower than orjson is."""
    try:
        return orjson.dumps(document)
    except TypeError as error:
        raise Unrepresentable(f"JSON: {cut(str(error))}") from error


def decode(data: bytes, *, limits: Limits) -> Document:
    """See ``document.parse``; of a key that stands twice the last counts, as everywhere in Kubernetes."""
    return parse(data, limits=limits)


def decode_strict(data: bytes, *, limits: Limits) -> Document:
    """``decode``, and InvalidDocument where an object has a key twice."""
    document = parse(data, limits=limits)
    try:
        json.loads(data, object_pairs_hook=_without_duplicates)
    except RecursionError as error:
        raise LimitExceeded("JSON nested too deeply to look for duplicate keys") from error
    return document


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidDocument(f"the key {cut(twice)!r} stands twice in one object")
    return found
