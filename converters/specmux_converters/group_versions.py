"""Discovery keys of group-versions, as ``/openapi/v3`` lists them."""

from __future__ import annotations

from typing import Final, NewType

GroupVersion = NewType("GroupVersion", str)
"""A key of the discovery map: "api/v1", "apis/apps/v1", and what stands beside group-versions: "version"."""

_DEPTHS: Final = {"api": 2, "apis": 3}
"""Segments of the key of a group-version; what stands beside them is as long as its root."""


def group_version_of(path: str) -> GroupVersion | None:
    """The key of the document that holds ``path``, None for a path that no document can hold ("/").

    Kubernetes takes the root of the web service a path belongs to (k8s.io/apiserver, routes/openapi.go): a
    service with one route prints it with a trailing slash, and any other path lies one or more segments
    below its root. So "/openid/v1/jwks/" is "openid/v1/jwks", and "/openid/v1/jwks" is "openid/v1".
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
