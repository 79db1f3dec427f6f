"""OpenAPI 3.1 that an apiserver serves, as the 3.0 that is passed on. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, beginning, decoded, encoded
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.jobs.losses import Losses, losses_of
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Offer, Provenance
from specmux_converters.document import Limits, canonical, content_hash, parse
from specmux_converters.errors import ConverterError, LimitExceeded
from specmux_converters.openapi31 import is_openapi_31

HEAD: Final = 256
"""Bytes of a document in which Kubernetes' servers state its version."""

_FIRST: Final = re.compile(rb'\s*\{\s*"openapi"\s*:\s*"([^"]*)"')
_ANYWHERE: Final = re.compile(rb'"openapi"\s*:\s*"3\.1')


@dataclass(frozen=True, slots=True)
class LoweredDocument:
    """``hash``: the content hash of the JSON that ``gzip`` packs, ``size`` its bytes."""

    gzip: bytes
    hash: Hash
    size: int
    losses: Losses

    def offer(self, hash: Hash) -> Offer:
        """With what it lost, under ``hash``."""
        lost = self.losses
        return Offer(
            hash=hash,
            provenance=Provenance.NATIVE,
            size=self.size,
            losses=lost.count,
            loss_examples=lost.named,
        )


def states_other_version(body: bytes, coding: Coding) -> bool:
    """Whether the first key of a document is a version other than 3.1, which nearly all begin with."""
    found = _FIRST.match(beginning(body, coding, size=HEAD))
    return found is not None and not found[1].startswith(b"3.1")


def lowered_document(body: bytes, coding: Coding, *, limits: Limits) -> LoweredDocument | Failure | None:
    """None: it is not 3.1, or no document at all, which others tell."""
    try:
        plain = decoded(body, coding, max_bytes=limits.max_bytes)
    except (BadCoding, TooLarge):
        return None
    return lowered_json(plain, limits=limits)


def lowered_json(plain: bytes, *, limits: Limits) -> LoweredDocument | Failure | None:
    """As ``lowered_document``, of a body that is unpacked."""
    if _ANYWHERE.search(plain) is None:
        return None
    from specmux_converters.openapi31.lowering import as_openapi_30  # few servers have it

    try:
        document = parse(plain, limits=limits)
        if not is_openapi_31(document):
            return None
        made, losses = as_openapi_30(document)
        json = canonical(made)
    except ConverterError as error:
        cause = Cause.TOO_LARGE if isinstance(error, LimitExceeded) else Cause.BAD_BODY
        return Failure(cause, f"OpenAPI 3.1 that cannot be read as 3.0: {error}")
    return LoweredDocument(encoded(json, Coding.GZIP), Hash(content_hash(json)), len(json), losses_of(losses))
