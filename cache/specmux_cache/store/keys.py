"""The key of a representation of a document in the store, and its owner."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass

ANONYMOUS: Final = "anonymous"
"""The partition of a client without credentials."""
INNOCENT: Final = frozenset({"accept-language", "user-agent", "x-request-id", "traceparent", "tracestate"})
"""Request fields that do not identify the caller."""


@dataclass(frozen=True, slots=True)
class Key:
    """The identity of an entry. Not its URL: kubectl adds ``timeout=32s`` and a redirect drops it, for the
    same bytes.

    ``hash`` is the server's, opaque; "" for documents without one. Hashes that differ for one (server,
    partition, group_version, media_type) are revisions of one document; the one used last is current.
    Resources other than documents have their path, with its leading slash, in place of a group-version.
    """

    server: str
    partition: str
    group_version: str
    hash: str
    media_type: str


def partition_of(headers: Mapping[str, str], *, identity: str, secret: bytes) -> str:
    """A name for the caller that reveals no credential: an HMAC over everything that could distinguish
    callers.

    ``identity``: credentials other than headers, such as a client certificate; "" for none.
    """
    shown = sorted((name.lower(), value) for name, value in headers.items() if name.lower() not in INNOCENT)
    if not shown and not identity:
        return ANONYMOUS
    parts = [identity, *(part for pair in shown for part in pair)]
    text = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in parts)
    return "hmac-" + hmac.new(secret, text, hashlib.sha256).hexdigest()[:32]
