"""Discovery keys of group-versions, as listed by ``/openapi/v3``."""

from __future__ import annotations

import re
from typing import Final, NewType

GroupVersion = NewType("GroupVersion", str)
"""A key of the discovery map: "api/v1", "apis/apps/v1", and others such as "version"."""

_API: Final = re.compile(r"api/([^/]+)|apis/([^/]+)/([^/]+)")
_DEPTHS: Final = {"api": 2, "apis": 3}
"""Segments in the key of a group-version; other keys are as long as their root."""

KEY_MAX: Final = 512
"""Most characters of a discovery key."""

# RFC 3986 3.3 pchar without percent-encoding.
_SEGMENT: Final = r"[A-Za-z0-9._~!$&'()*+,;=:@-]+"
_KEY: Final = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
_DOT_SEGMENTS: Final = frozenset({".", ".."})


def group_version_of(path: str) -> GroupVersion | None:
    """The key of the document that contains ``path``; None for a path that no document can contain ("/").

    Kubernetes uses the root of the path's web service (k8s.io/apiserver, routes/openapi.go): a service with a
    single route prints it with a trailing slash, any other path lies at least one segment below its root. So
    "/openid/v1/jwks/" belongs to "openid/v1/jwks", and "/openid/v1/jwks" to "openid/v1".
    """
    if not path.startswith("/"):
        return None
    segments = path[1:].split("/", 3)
    depth = _DEPTHS.get(segments[0])
    if depth is None and len(segments) > 1:
        *segments, _ = path[1:].split("/")
    literal: list[str] = []
    for segment in segments[:depth]:
        if "{" in segment or not segment:
            break
        literal.append(segment)
    return GroupVersion("/".join(literal)) if literal else None


def split(group_version: GroupVersion) -> tuple[str, str] | None:
    """Group ("" for core) and version; None for a discovery key such as "version"."""
    match = _API.fullmatch(group_version)
    if match is None:
        return None
    return ("", match[1]) if match[1] else (match[2], match[3])


def join_group_version(group: str, version: str) -> GroupVersion:
    """The discovery key of a group-version."""
    return GroupVersion(f"apis/{group}/{version}" if group else f"api/{version}")


def api_version(group: str, version: str) -> str:
    """The form used in objects and legacy discovery."""
    return f"{group}/{version}" if group else version


def named_group_version(name: str) -> GroupVersion:
    """The discovery key that people mean by ``apps/v1`` or ``v1``; other keys are unchanged."""
    *group, version = name.split("/")
    if not group:
        return join_group_version("", version) if re.match("v[0-9]", version) else GroupVersion(name)
    is_short = len(group) == 1 and group[0] not in _DEPTHS and not group[0].startswith(".")
    return join_group_version(group[0], version) if is_short else GroupVersion(name)


def key_fault(key: str) -> str | None:
    """The fault of a discovery key; None if it is valid."""
    if len(key) > KEY_MAX:
        return f"is longer than {KEY_MAX} characters"
    if not _KEY.fullmatch(key):
        return "is not a relative URL path"
    if not _DOT_SEGMENTS.isdisjoint(key.split("/")):
        return "holds a dot segment"
    return None
