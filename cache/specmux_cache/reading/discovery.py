"""The discovery root: the group-versions and the URLs of their documents."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import orjson

from specmux_cache.http.server import ROOT_PATH, Server, hash_in
from specmux_converters.json_text import may_have_more_values
from specmux_converters.json_values import mapping
from specmux_converters.lazy.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """The location of a group-version's document."""

    group_version: str
    """The key in the root: ``api/v1``, ``apis/apps/v1``; also such as ``version``, ``openid/v1/jwks``."""
    target: str
    """Path and query below the server's base path."""
    hash: str
    """"" for a document without one."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The parsed root, sorted by group-version."""

    documents: Mapping[str, Document]
    refused: tuple[str, ...]
    """Group-versions whose URL is malformed or leads to another server."""


VALUES_MAX: Final = 200_000
"""Most JSON values of a root: twenty thousand group-versions."""


def parse_discovery(body: bytes, server: Server) -> Discovery:
    """Raises ValueError for a body that is not a discovery root."""
    if may_have_more_values(body, VALUES_MAX):
        raise ValueError(f"the discovery root has more than {VALUES_MAX} values")
    try:
        tree = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValueError("the discovery root is not JSON") from error
    paths = tree.get("paths", tree.get("Paths")) if isinstance(tree, dict) else None
    if not isinstance(paths, dict):
        raise ValueError("the discovery root has no paths")
    documents: dict[str, Document] = {}
    refused: list[str] = []
    for group_version, entry in sorted(paths.items()):
        reference = mapping(entry).get("serverRelativeURL")
        target = (
            server.target(reference) if isinstance(reference, str) and reference.startswith("/") else None
        )
        if target is None or not target.startswith(ROOT_PATH + "/"):
            refused.append(group_version)
        else:
            documents[group_version] = Document(group_version, target, hash_in(target))
    return Discovery(MappingProxyType(documents), tuple(refused))
