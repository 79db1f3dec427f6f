"""What identifies one representation of one document in the store, and whose it is."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from specmux_converters.deferred_dataclasses import dataclass

ANONYMOUS: Final = "anonymous"
"""The partition of a client that shows no credential."""
INNOCENT: Final = frozenset({"accept-language", "user-agent", "x-request-id", "traceparent", "tracestate"})
"""Request fields that say nothing of who asks."""


@dataclass(frozen=True, slots=True)
class Key:
    """Not the URL: kubectl adds ``timeout=32s`` to it and a redirect drops it, for the same bytes.

    ``hash`` is the server's, opaque; "" for documents that have none. Two hashes of one (server, partition,
    group_version, media_type) are revisions of the same document: the one used last is the current one.
    Resources that are not documents of a group-version have their path in place of one, with the leading
    slash that no group-version has.
    """

    server: str
    partition: str
    group_version: str
    hash: str
    media_type: str


def partition_of(headers: Mapping[str, str], *, identity: str, secret: bytes) -> str:
    """Who asks, as a name that gives no credential away: an HMAC over all that could tell one from another.

    ``identity`` is what shows who asks and is not a header, such as a client certificate; "" for nothing.
    """
    shown = sorted((name.lower(), value) for name, value in headers.items() if name.lower() not in INNOCENT)
    if not shown and not identity:
        return ANONYMOUS
    parts = [identity, *(part for pair in shown for part in pair)]
    text = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in parts)
    return "hmac-" + hmac.new(secret, text, hashlib.sha256).hexdigest()[:32]
