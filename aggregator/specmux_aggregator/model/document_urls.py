"""The URL of one document at a backend: built by us from the discovery key and the hash, never copied.

What a backend says (``serverRelativeURL`` of its root, ``Location`` of a redirect) is only compared with what
we would have built; the hash is all that is taken from it (CVE-2022-3172 is what following it costs). Pure.
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
"""The parameter that a redirect of ours adds: whoever comes with it is not redirected again."""

# "etag" is the KEP's name for it; no value is what kube-openapi writes for a document without a hash.
_QUERY: Final = re.compile(r"(?:hash|etag)=([0-9A-Za-z]{0,128})")


class ForeignURL(ValueError):
    """A URL of a backend that is not the document it stands for; the message holds the URL, cut."""


def base_path(backend: Backend) -> str:
    """The path of the backend's URL without a trailing slash; "" for none."""
    return urlsplit(backend.url).path.rstrip("/")


def document_path(group_version: GroupVersion, hash_: Hash | None) -> str:
    """Path and query below the backend's URL."""
    path = f"{ROOT_PATH}/{group_version}"
    return path if hash_ is None else f"{path}?hash={hash_}"


def hash_in(reference: str, group_version: GroupVersion, *, base_path: str) -> Hash | None:
    """The hash in a backend's URL of this document, None where it names none. With or without the base path:
    not every backend knows of the prefix it is served under.

    Raises ForeignURL for every other URL: scheme, host, another path, an encoded or a further parameter.
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
