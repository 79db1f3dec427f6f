"""A document that every apiserver publishes under the same name, and whose it is, if it says so. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import orjson

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body, encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.observation import Hash, Offer, Provenance
from specmux_aggregator.workers.lowering import lower_json
from specmux_converters.document import Limits, content_hash, parse
from specmux_converters.errors import ConverterError


@dataclass(frozen=True, slots=True)
class SharedDocument:
    """``publisher``: a digest of ``info``, equal for documents of one server."""

    offer: Offer
    publisher: bytes
    gzip: bytes


def shared_document(body: bytes, coding: Coding, *, limits: Limits) -> SharedDocument | None:
    """The shared document in a body; None if it is not a document."""
    try:
        plain = decode_body(body, coding, max_bytes=limits.max_bytes)
        info = parse(plain, limits=limits).get("info")
    except (BadCoding, TooLarge, ConverterError):
        return None
    publisher = hashlib.sha256(orjson.dumps(info, option=orjson.OPT_SORT_KEYS)).digest()
    lowered = lower_json(plain, limits=limits)
    if isinstance(lowered, Failure):
        return None
    if lowered is not None:
        return SharedDocument(lowered.offer(lowered.hash), publisher, lowered.gzip)
    offer = Offer(hash=Hash(content_hash(plain)), provenance=Provenance.NATIVE, size=len(plain))
    return SharedDocument(offer, publisher, encode_body(plain, Coding.GZIP))
