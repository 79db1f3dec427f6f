"""The URL of a document at a backend: built from the discovery key and the hash, never copied.

URLs sent by a backend (``serverRelativeURL`` of its root, ``Location`` of a redirect) are only compared with
the expected URL; the hash is all that is taken from them (following them was CVE-2022-3172). Pure.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.observation import Hash
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion

ROOT_PATH: Final = "/openapi/v3"
SWAGGER_PATH: Final = "/openapi/v2"

REDIRECTED: Final = "redirected"
"""The parameter that specmux adds to a redirect; a request that has it is not redirected again."""

# "etag" is the KEP's name for it; kube-openapi writes it without a value for a document without a hash.
_QUERY: Final = re.compile(r"(?:hash|etag)=([0-9A-Za-z]{0,128})")


class ForeignURL(ValueError):
    """A URL sent by a backend that is not the expected document's; the message contains the URL,
    shortened."""


def base_path(backend: Backend) -> str:
    """The path of the backend's URL without a trailing slash; "" if it has none."""
    return urlsplit(backend.url).path.rstrip("/")


def document_path(group_version: GroupVersion, hash_: Hash | None) -> str:
    """Path and query below the backend's URL."""
    path = f"{ROOT_PATH}/{group_version}"
    return path if hash_ is None else f"{path}?hash={hash_}"


def hash_in(reference: str, group_version: GroupVersion, *, base_path: str) -> Hash | None:
    """The hash in a backend's URL of this document; None if it has none. The base path is optional: some
    backends do not know the prefix under which they are served.

    Raises ForeignURL for any other URL: a scheme, a host, another path, an encoded or additional parameter.
    """
    path, has_query, query = reference.partition("?")
    own = document_path(group_version, None)
    if path not in (own, base_path + own):
        raise ForeignURL(f"leads to {cut(path)}, not to {cut(own)}")
    if not has_query:
        return None
    match = _QUERY.fullmatch(query)
    if match is None:
        raise ForeignURL("has a query that is not one hash of 1 to 128 letters and digits")
    return Hash(match[1]) if match[1] else None
