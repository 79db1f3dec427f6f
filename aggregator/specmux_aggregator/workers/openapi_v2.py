"""Make ``/openapi/v2`` of published v3 documents. Pure; runs in a worker process.

The process caches each document's part by the document's hash, so a change costs one part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from specmux_aggregator.http.content_codings import encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.snapshot import DocumentKey
from specmux_aggregator.workers.built import NeededDocuments, SwaggerForm, Unencodable
from specmux_aggregator.workers.documents import REFUSALS
from specmux_converters.codecs import protobuf_v2
from specmux_converters.document import Limits, parse
from specmux_converters.media_types import PROTOBUF_V2, MediaType
from specmux_converters.to_swagger2.conversion import ReleaseMemo
from specmux_converters.to_swagger2.encoded import EncodedPiece, encode_piece, join_json

_PIECES: Final[dict[DocumentKey, EncodedPiece | None]] = {}
"""Parts of the documents merged last; None for a document that was refused."""


def merge_swagger(
    keys: Sequence[DocumentKey],
    documents: Sequence[tuple[DocumentKey, bytes]],
    *,
    media_type: MediaType,
    coding: Coding,
    limits: Limits,
) -> SwaggerForm | NeededDocuments | Unencodable:
    """The merged document of ``keys``; ``documents``: the JSON of those that were needed."""
    memo = ReleaseMemo()
    for key, json in documents:
        try:
            _PIECES[key] = encode_piece(parse(json, limits=limits), limits=limits, memo=memo)
        except REFUSALS:
            _PIECES[key] = None
    for gone in _PIECES.keys() - set(keys):
        del _PIECES[gone]
    needed = tuple(key for key in keys if key not in _PIECES)
    if needed:
        return NeededDocuments(needed)
    pieces = {key: piece for key in keys if (piece := _PIECES[key]) is not None}
    refused = tuple(key for key in keys if key not in pieces)
    encode = _protobuf if media_type == PROTOBUF_V2 else _json
    try:
        return SwaggerForm(encode_body(encode(pieces), coding), refused)
    except REFUSALS as error:
        unfit = tuple(key for key, piece in pieces.items() if not _is_encodable({key: piece}))
        if not 0 < len(unfit) < len(pieces):
            return Unencodable(str(error))
    fit = {key: piece for key, piece in pieces.items() if key not in unfit}
    try:
        return SwaggerForm(encode_body(encode(fit), coding), refused, unfit)
    except REFUSALS as error:
        return Unencodable(str(error))


def _json(pieces: Mapping[DocumentKey, EncodedPiece]) -> bytes:
    return join_json({key.group_version: piece for key, piece in pieces.items()})


def _protobuf(pieces: Mapping[DocumentKey, EncodedPiece]) -> bytes:
    return protobuf_v2.encode(orjson.loads(_json(pieces)))


def _is_encodable(pieces: Mapping[DocumentKey, EncodedPiece]) -> bool:
    try:
        return bool(_protobuf(pieces))
    except REFUSALS:
        return False
