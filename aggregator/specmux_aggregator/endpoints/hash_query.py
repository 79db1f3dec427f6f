"""The query of a document request: the hash a client asks for, and everything else kept as it came. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

from specmux_aggregator.model.document_urls import REDIRECTED
from specmux_aggregator.model.observation import Hash

HASH_PARAMETERS: Final = ("hash", "etag")
"""What Kubernetes ships, and what KEP-2896 writes."""

HASH_MAX: Final = 256
"""Characters; the longest we publish is 128."""


@dataclass(frozen=True, slots=True)
class AskedHash:
    """The hash in a query, and under which parameter name."""

    hash: Hash
    parameter: str
    index: int
    """Which of the ``&``-separated parts it is."""
    is_redirected: bool = False
    """A replica sent the client here for this hash."""


class BadQuery(ValueError):
    """The query asks for no hash or several; the message is for the client."""


def asked_hash(query: str) -> AskedHash | None:
    """The hash that the query names; None when it names none.

    Raises BadQuery for an empty, an overlong and a repeated one: a cache in front could read it otherwise.
    """
    found: AskedHash | None = None
    if not query:
        return None
    is_redirected = False
    for index, part in enumerate(query.split("&")):
        name, _, value = part.partition("=")
        name = unquote(name) if "%" in name else name
        if name not in HASH_PARAMETERS:
            is_redirected |= name == REDIRECTED
            continue
        if found is not None:
            raise BadQuery("the query names more than one hash")
        value = unquote(value) if "%" in value else value
        if not value:
            raise BadQuery(f'the query parameter "{name}" is empty')
        if len(value) > HASH_MAX:
            raise BadQuery(f'the query parameter "{name}" is longer than {HASH_MAX} characters')
        found = AskedHash(Hash(value), name, index)
    return replace(found, is_redirected=True) if found is not None and is_redirected else found


def with_hash(query: str, asked: AskedHash, current: Hash) -> str:
    """The query with the current hash in the place of the asked one, the mark of a redirect, and all else as
    the client sent it."""
    parts = query.split("&")
    parts[asked.index] = f"{asked.parameter}={current}"
    return "&".join((*parts, f"{REDIRECTED}=1"))
