"""Validate a backend's discovery root. Pure.

A root is accepted as a whole or not at all: a server with one invalid entry is not trusted for the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import orjson

from specmux_aggregator.http.messages import ETag
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.document_urls import ForeignURL, base_path, hash_in
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion, key_fault
from specmux_converters.json_text import may_have_more_values
from specmux_converters.json_values import mapping

ROOT_VALUES: Final = 100_000
VALUES_OF_ONE: Final = 8
"""JSON values of a root that are parsed, beside its paths and per path."""


@dataclass(frozen=True, slots=True)
class BackendRoot:
    """The documents that a backend offers and may publish, with the backend's hashes where it has them."""

    offers: Mapping[GroupVersion, Hash | None]
    etag: ETag | None
    """The entity tag of the representation, for the next conditional request."""
    ignored: tuple[str, ...]
    """Keys that the backend lists but may not publish, sorted and limited."""


class _RootRefusal(ValueError):
    """The root is invalid; the message is for people."""


def parse_root(
    body: bytes, backend: Backend, *, etag: ETag | None, max_group_versions: int
) -> BackendRoot | Failure:
    """Parse ``body`` (decoded JSON). Fails with BAD_BODY if it is not JSON, and BAD_ROOT if it is not a
    root."""
    if may_have_more_values(body, ROOT_VALUES + VALUES_OF_ONE * max_group_versions):
        return Failure(Cause.TOO_LARGE, f"the root has more values than {max_group_versions} paths can have")
    try:
        tree = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return Failure(Cause.BAD_BODY, f"the root is not JSON: {error.msg} at byte {error.pos}")
    try:
        paths = _paths(tree, max_group_versions)
        owned = {GroupVersion(key): entry for key, entry in paths.items() if backend.owns(GroupVersion(key))}
        prefix = base_path(backend)
        offers = {key: _offered_hash(key, entry, prefix) for key, entry in owned.items()}
    except _RootRefusal as refused:
        return Failure(Cause.BAD_ROOT, str(refused))
    ignored = tuple(sorted(cut(key) for key in paths.keys() - owned.keys()))
    return BackendRoot(MappingProxyType(offers), etag, ignored)


def _paths(tree: Any, max_group_versions: int) -> dict[str, Any]:
    if not isinstance(tree, dict):
        raise _RootRefusal("the root is not a JSON object")
    paths = tree.get("paths")
    if not isinstance(paths, dict):
        raise _RootRefusal('the root has no object "paths"')
    if len(paths) > max_group_versions:
        raise _RootRefusal(f"the root lists {len(paths)} paths, more than the {max_group_versions} allowed")
    return paths


def _offered_hash(key: GroupVersion, entry: Any, prefix: str) -> Hash | None:
    fault = key_fault(key)
    if fault is not None:
        raise _RootRefusal(f'the key "{cut(key)}" {fault}')
    url = mapping(entry).get("serverRelativeURL")
    if not isinstance(url, str):
        raise _RootRefusal(f'the key "{cut(key)}" has no string "serverRelativeURL"')
    try:
        return hash_in(url, key, base_path=prefix)
    except ForeignURL as foreign:
        raise _RootRefusal(f'the URL of the key "{cut(key)}" {foreign}') from foreign
