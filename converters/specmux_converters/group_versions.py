"""Discovery keys of group-versions, as ``/openapi/v3`` lists them."""

from __future__ import annotations

from typing import NewType

GroupVersion = NewType("GroupVersion", str)
"""A key of the discovery map: "api/v1", "apis/apps/v1", and what stands beside group-versions: "version"."""


def group_version_of(path: str) -> GroupVersion | None:
    """The key of the document that holds ``path``, None for a path that no document can hold ("/").

    Kubernetes takes the root of the web service a path belongs to (k8s.io/apiserver, routes/openapi.go): a
    service with one route prints it with a trailing slash, and any other path lies one or more segments
    below its root. So "/openid/v1/jwks/" is "openid/v1/jwks", and "/openid/v1/jwks" is "openid/v1".
    """
    if not path.startswith("/"):
        return None
    *parents, last = path[1:].split("/")
    segments = parents if last == "" or (parents and parents[0] not in ("api", "apis")) else [*parents, last]
    literal: list[str] = []
    for segment in segments:
        if "{" in segment or not segment:
            break
        literal.append(segment)
    if not literal:
        return None
    depth = {"api": 2, "apis": 3}.get(literal[0], len(literal))
    return GroupVersion("/".join(literal[:depth]))
