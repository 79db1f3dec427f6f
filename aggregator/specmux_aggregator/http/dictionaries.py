"""Compression dictionaries (RFC 9842): what a request offers, and what an answer may be used for. Pure.

A dictionary is named twice, by the hash of its document (``Dictionary-ID``), which finds it, and by the
SHA-256 of its bytes in one form (``Available-Dictionary``), which proves that the client has them.
"""

from __future__ import annotations

import re
from base64 import b64decode
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from specmux_aggregator.http.messages import ETag, Request
from specmux_aggregator.http.negotiation import quality_of
from specmux_aggregator.http.prepared_answer import Representation
from specmux_aggregator.model.observation import Hash

DCZ: Final = "dcz"
HEADER: Final = bytes.fromhex("5e2a4d1820000000")
"""What the SHA-256 of the dictionary follows in a ``dcz`` body (RFC 9842 5): a skippable frame of zstd."""

_DIGEST: Final = re.compile(r":([0-9A-Za-z+/]{43}=):")
_ID: Final = re.compile(r'"([0-9A-Za-z._-]{1,256})"')
_SEGMENT: Final = re.compile(r"[0-9A-Za-z._-]+")


class OfferedDictionary(NamedTuple):
    """A document that a client has."""

    hash: Hash
    digest: bytes
    """SHA-256 of its bytes, which are in the form that is requested or of no use."""


@lru_cache(maxsize=512)
def accepts_dcz(accept_encoding: str | None) -> bool:
    """Whether an answer may depend on a dictionary. A wildcard does not mean it."""
    return accept_encoding is not None and (quality_of(DCZ, accept_encoding) or 0.0) > 0


def offered_dictionary(request: Request) -> OfferedDictionary | None:
    """The dictionary of a request that accepts ``dcz``; None if it names none by both names.

    If-Match means the representation without a dictionary, as its entity tag is the one that clients know.
    """
    if request.dictionary is None or request.if_match is not None:
        return None
    digest, _, name = request.dictionary.partition(" ")
    digested, named = _DIGEST.fullmatch(digest), _ID.fullmatch(name)
    if digested is None or named is None:
        return None
    return OfferedDictionary(Hash(named[1]), b64decode(digested[1]))


def use_as_dictionary(path: str, hash: Hash) -> str:
    """The value of Use-As-Dictionary for a document at this path; "" where a pattern could mean another.

    The pattern is relative, as Location is: a proxy may add a prefix to the path (k/k#117463).
    """
    segment = path.rpartition("/")[2]
    if not _SEGMENT.fullmatch(segment) or not _ID.fullmatch(f'"{hash}"'):
        return ""
    return f'match="{segment}?*", id="{hash}"'


def by_dictionary(representation: Representation, dictionary: OfferedDictionary) -> Representation:
    """The representation compressed with a dictionary. Its strong entity tag names the dictionary, since its
    bytes follow from it."""
    tag = representation.etag[:-1].removesuffix(f"-{representation.coding.value}")
    etag = ETag(f'{tag}-{DCZ}-{dictionary.digest.hex()[:32]}"')
    return replace(representation, etag=etag, content_coding=DCZ)
