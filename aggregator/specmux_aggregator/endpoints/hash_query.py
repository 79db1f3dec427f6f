"""The query of a document request: the requested hash; everything else is kept unchanged. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

from specmux_aggregator.model.document_urls import REDIRECTED
from specmux_aggregator.model.observation import Hash

HASH_PARAMETERS: Final = ("hash", "etag")
"""The parameter names of Kubernetes and of KEP-2896."""

HASH_MAX: Final = 256
"""Characters; the longest published hash has 128."""


@dataclass(frozen=True, slots=True)
class AskedHash:
    """The hash in a query, and the name of its parameter."""

    hash: Hash
    parameter: str
    index: int
    """Its position among the ``&``-separated parts."""
    is_redirected: bool = False
    """Whether a replica redirected the client here for this hash."""


class BadQuery(ValueError):
    """The hash is empty, overlong or repeated; the message is for the client."""


def asked_hash(query: str) -> AskedHash | None:
    """The hash in the query; None if there is none.

    Raises BadQuery for an empty, an overlong or a repeated one: a cache in front could read it differently.
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
    """The query with the current hash in place of the requested one, the redirect mark, and everything else
    unchanged."""
    parts = query.split("&")
    parts[asked.index] = f"{asked.parameter}={current}"
    return "&".join((*parts, f"{REDIRECTED}=1"))
