"""Classify the request targets that backends answer, and find the backend, given a Snapshot. Pure.

Nothing is decoded. A target that a backend could read as another path is refused: dot segments and control
characters, including percent-encoded ones.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final
from urllib.parse import unquote_to_bytes

from specmux_aggregator.aggregation.ownership import precedence
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.document_urls import SWAGGER_PATH
from specmux_aggregator.model.snapshot import Snapshot
from specmux_cache.access.server_access import Credentials
from specmux_converters.group_versions import GroupVersion, key_fault

_RESOURCE: Final = re.compile(r"/(api/[^/?]+|apis/[^/?]+/[^/?]+)/[^?]")
"""A path below the discovery document of a group-version, which is not a resource itself."""

_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]")
_DOT_SEGMENT: Final = re.compile(rb"(?:^|[/\\])\.\.?(?:[/\\;]|$)")
"""Includes the suffixes that some servers strip from a segment (path parameters)."""


APISERVER_PAGES: Final = frozenset({"/healthz", "/.well-known/openid-configuration", "/openid/v1/jwks"})
"""Pages that only a cluster's apiserver can answer: its health, and OIDC discovery for its tokens."""


def is_apiserver_page(target: str) -> bool:
    return target.partition("?")[0] in APISERVER_PAGES


def is_swagger(target: str) -> bool:
    return target.partition("?")[0] == SWAGGER_PATH


def is_resource(target: str) -> bool:
    """Whether the target lies below a group-version, known or not."""
    return _RESOURCE.match(target) is not None


def is_relayed(target: str) -> bool:
    """Whether a backend answers it with the client's own credentials."""
    return is_resource(target) or is_apiserver_page(target)


def group_version_of(target: str) -> GroupVersion | None:
    """The group-version in the target of a resource; None if it is malformed."""
    match = _RESOURCE.match(target)
    if match is None or key_fault(match[1]) is not None:
        return None
    return GroupVersion(match[1])


def target_fault(target: str) -> str | None:
    """Why this target must not be passed on; None if it may."""
    path = target.partition("?")[0]
    if "#" in target or _BAD_ESCAPE.search(path):
        return "its path is malformed"
    plain = unquote_to_bytes(path)
    if _CONTROL.search(plain):
        return "its path holds a control character"
    if _DOT_SEGMENT.search(plain):
        return "its path holds a dot segment"
    return None


def swagger_candidates(snapshot: Snapshot) -> tuple[Backend, ...]:
    """Backends that may have a Swagger 2.0 document, in the order to try, whether or not they can be reached.

    A cluster's apiserver has the merged document: the extension servers found there have parts of it, and are
    asked only where no apiserver is.
    """
    served = [item for item in snapshot.observations.values() if item.backend.url]
    has_whole = any(item.backend.is_fallback for item in served)
    return tuple(
        item.backend
        for item in sorted(served, key=precedence)
        if item.backend.found is None or item.backend.is_fallback or not has_whole
    )


def owner_of(snapshot: Snapshot, group_version: GroupVersion) -> Backend | None:
    """The backend for resources of a group-version; None if there is none.

    Where no backend over HTTP owns it, a watched cluster's apiserver does: it serves custom resources, and
    knows a group-version before its document is published.
    """
    entry = snapshot.entries.get(group_version)
    if entry is None:
        return apiserver_in(snapshot)
    backend = snapshot.observations[entry.owner].backend
    if backend.url:
        return backend
    # A directory has no resources, whether or not a cluster is watched as well.
    return None if backend.directory or backend.kubernetes else apiserver_in(snapshot)


def without_credentials(backend: Backend) -> Backend:
    """The same backend without this service's credentials: a client's request carries its own."""
    tls = replace(backend.tls, cert_file=None, key_file=None, cert_data=None, key_data=None)
    return replace(backend, tls=tls, credentials=Credentials())


def apiserver_in(snapshot: Snapshot) -> Backend | None:
    """The apiserver of the watched cluster; None if no cluster is watched."""
    for item in sorted(snapshot.observations.values(), key=precedence):
        if item.backend.is_fallback and item.backend.url:
            return item.backend
    return None
