"""What identifies one representation of one document in the store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """Not the URL: kubectl adds ``timeout=32s`` to it and a redirect drops it, for the same bytes.

    ``hash`` is the server's, opaque; "" for documents that have none. Two hashes of one (server, partition,
    group_version, media_type) are revisions of the same document: the one used last is the current one.
    """

    server: str
    partition: str
    group_version: str
    hash: str
    media_type: str
