"""Renderings of what is made on request: their ETag, and answers that nobody keeps."""

from __future__ import annotations

import hashlib
from typing import Final

from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.negotiation import coding_for
from specmux_aggregator.http.prepared_answer import NO_STORE, PreparedAnswer, Representation, prepare
from specmux_aggregator.version import VERSION

RENDERER: Final = f"{VERSION}-4"
"""Part of every ETag: what renders anew has another. The number rises with what is rendered."""


def represent(
    request: Request, *what: str, content_type: str, route: str, format: str, is_private: bool,
    fields: tuple[tuple[str, str], ...] = (),
) -> Representation:  # fmt: skip
    """The representation of what is asked for; its ETag follows from ``what`` it is made of."""
    coding = coding_for(request.accept_encoding)
    named = "\0".join((RENDERER, coding.value, request.query, *what))
    return Representation(
        content_type=content_type,
        etag=ETag(f'"{hashlib.sha256(named.encode()).hexdigest()[:32]}"'),
        route=route,
        format=format,
        coding=coding,
        is_private=is_private,
        is_head=request.method == "HEAD",
        fields=fields,
    )


def prepare_unstored(representation: Representation, body: bytes, code: int = 200) -> PreparedAnswer:
    """An answer that nobody keeps: the same question has another one soon."""
    fields = [("Content-Type", representation.content_type), NO_STORE, *representation.fields]
    if representation.coding is not Coding.IDENTITY:
        fields.append(("Content-Encoding", representation.coding.value))
    return prepare(
        code,
        fields,
        body,
        is_head=representation.is_head,
        route=representation.route,
        format=representation.format,
    )
