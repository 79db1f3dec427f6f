"""Lower OpenAPI 3.1 from an apiserver to 3.0. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, beginning, decoded, encoded
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Offer, Provenance
from specmux_aggregator.workers.losses import Losses, losses_of
from specmux_converters.document import Limits, canonical, content_hash, parse
from specmux_converters.errors import ConverterError, LimitExceeded
from specmux_converters.lower_openapi31 import as_openapi_30, is_later_than_30

HEAD: Final = 256
"""Bytes within which Kubernetes' servers state a document's version."""

_FIRST: Final = re.compile(rb'\s*\{\s*"openapi"\s*:\s*"3\.0(?:\.[^"\\]*)?"')
_KEY: Final = b'"openapi"'
_VALUE: Final = re.compile(rb'\s*:\s*"([^"]*)"')
_LATER: Final = re.compile(rb"3\.0*[1-9]")
_ESCAPES: Final = (b"\\u006", b"\\u007")
"""The beginning of escapes of the key's letters. No server writes them, but a parser reads them."""


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
    return _FIRST.match(beginning(body, coding, size=HEAD)) is not None


def may_be_later(plain: bytes) -> bool:
    """Whether a document may state a version after 3.0, wherever that stands; found without parsing."""
    at = plain.find(_KEY)
    while at >= 0:
        value = _VALUE.match(plain, at + len(_KEY))
        if value is not None and (b"\\" in value[1] or _LATER.match(value[1])):
            return True
        at = plain.find(_KEY, at + len(_KEY))
    # The search for a backslash is 40 times as fast as that for an escape.
    return b"\\" in plain and any(escape in plain for escape in _ESCAPES)


def coded_may_be_later(body: bytes, coding: Coding, *, limits: Limits) -> bool:
    """Like ``may_be_later``, of a coded body. Bytes that cannot be decoded are reported elsewhere."""
    try:
        return may_be_later(decoded(body, coding, max_bytes=limits.max_bytes))
    except (BadCoding, TooLarge):
        return False


def lowered_document(body: bytes, coding: Coding, *, limits: Limits) -> LoweredDocument | Failure | None:
    """None if the bytes are 3.0, or not a document, which is reported elsewhere."""
    try:
        plain = decoded(body, coding, max_bytes=limits.max_bytes)
    except (BadCoding, TooLarge):
        return None
    return lowered_json(plain, limits=limits)


def lowered_json(plain: bytes, *, limits: Limits) -> LoweredDocument | Failure | None:
    """Like ``lowered_document``, for a body without content coding."""
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
    return LoweredDocument(encoded(json, Coding.GZIP), Hash(content_hash(json)), len(json), losses_of(losses))
