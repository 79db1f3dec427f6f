"""Lower OpenAPI 3.1 from an apiserver to 3.0, and read the documents that every apiserver publishes under the
same name. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

import orjson

from specmux_aggregator.http.content_codings import (
    BadCoding,
    TooLarge,
    decode_beginning,
    decode_body,
    encode_body,
)
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Offer, Provenance
from specmux_aggregator.workers.losses import Losses, losses_of
from specmux_converters.document import Limits, canonical, content_hash, parse
from specmux_converters.errors import ConverterError, LimitExceeded
from specmux_converters.lower_openapi31 import as_openapi_30, is_later_than_30

END: Final = 256
"""Bytes at either end of a document within which servers state its version: Kubernetes' at the beginning,
those that sort keys at the end if there are few paths."""

_FIRST: Final = re.compile(rb'\s*\{\s*"openapi"\s*:\s*"3\.0(?:\.[^"\\]*)?"')
_KEY: Final = b'"openapi"'
_BEFORE_KEY: Final = b"{, \t\r\n"
_VALUE: Final = re.compile(rb'\s*:\s*"([^"]*)"')
_LATER: Final = re.compile(rb"3\.0*[1-9]")
_ESCAPE: Final = re.compile(rb"\\u00[2367]")
"""Escapes of the version's dot and digits and of the key's letters. No server writes them, but a parser reads
them."""
_KEY_ESCAPE: Final = re.compile(rb"\\u00[67]")
_NUMBERS_MAX: Final = 64
"""Numbers after 3.0 outside of a string's beginning that are skipped one by one."""


@dataclass(frozen=True, slots=True)
class LoweredDocument:
    """``hash``: the content hash of the JSON in ``gzip``; ``size``: its bytes."""

    gzip: bytes
    hash: Hash
    size: int
    losses: Losses

    def offer(self, hash: Hash) -> Offer:
        """An offer under ``hash`` with the losses."""
        lost = self.losses
        return Offer(
            hash=hash,
            provenance=Provenance.NATIVE,
            size=self.size,
            losses=lost.count,
            loss_examples=lost.named,
        )


def begins_with_30(body: bytes, coding: Coding) -> bool:
    """Whether the first key of a document, as in nearly all, states 3.0. Of two such keys the first counts
    here."""
    return _FIRST.match(decode_beginning(body, coding, size=END)) is not None


def _ends_with_30(plain: bytes) -> bool:
    """Whether the last keys of a document state 3.0. What is JSON with a brace before it is the end of the
    whole object, not of one within it; and within a string a backslash stands before each quote."""
    at = plain.rfind(_KEY, max(1, len(plain) - END))
    if at < 0 or plain[at - 1] not in _BEFORE_KEY:
        return False
    try:
        version = orjson.loads(b"{" + plain[at:])["openapi"]
    except orjson.JSONDecodeError:
        return False
    return isinstance(version, str) and _LATER.match(version.encode()) is None


def may_be_later(plain: bytes) -> bool:
    """Whether a document may state a version after 3.0, wherever that stands; found without parsing all of
    it. Of two such keys the last counts, if it is at the end."""
    if _ends_with_30(plain):
        return False
    is_escaped = b"\\" in plain and _ESCAPE.search(plain) is not None
    if not is_escaped and not _may_begin_later(plain):
        return False
    at = plain.find(_KEY)
    while at >= 0:
        value = _VALUE.match(plain, at + len(_KEY))
        if value is not None and (b"\\" in value[1] or _LATER.match(value[1])):
            return True
        at = plain.find(_KEY, at + len(_KEY))
    return is_escaped and _KEY_ESCAPE.search(plain) is not None


def _may_begin_later(plain: bytes) -> bool:
    """Whether any string may begin with a version after 3.0. A search for such a number takes two thirds of
    that for the key, of documents as servers write them a quarter."""
    for count, found in enumerate(_LATER.finditer(plain)):
        if count == _NUMBERS_MAX or plain.startswith(b'"', found.start() - 1):
            return True
    return False


def coded_may_be_later(body: bytes, coding: Coding, *, limits: Limits) -> bool:
    """Like ``may_be_later``, of a coded body. Bytes that cannot be decoded are reported elsewhere."""
    try:
        return may_be_later(decode_body(body, coding, max_bytes=limits.max_bytes))
    except (BadCoding, TooLarge):
        return False


def lower_document(body: bytes, coding: Coding, *, limits: Limits) -> LoweredDocument | Failure | None:
    """None if the bytes are 3.0, or not a document, which is reported elsewhere."""
    try:
        plain = decode_body(body, coding, max_bytes=limits.max_bytes)
    except (BadCoding, TooLarge):
        return None
    return lower_json(plain, limits=limits)


def lower_json(plain: bytes, *, limits: Limits) -> LoweredDocument | Failure | None:
    """Like ``lower_document``, for a body without content coding."""
    if not may_be_later(plain):
        return None
    try:
        document = parse(plain, limits=limits)
        if not is_later_than_30(document):
            return None
        made, losses = as_openapi_30(document)
        json = canonical(made)
    except ConverterError as error:
        cause = Cause.TOO_LARGE if isinstance(error, LimitExceeded) else Cause.BAD_BODY
        return Failure(cause, f"cannot be read as OpenAPI 3.0: {error}")
    return LoweredDocument(
        encode_body(json, Coding.GZIP), Hash(content_hash(json)), len(json), losses_of(losses)
    )


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
