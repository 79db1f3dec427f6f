"""The operations of a kind in an OpenAPI v3 document, with the media types that they consume and produce.
Pure.

The verb is stated by the operation (``x-kubernetes-action``), or follows from method and path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from specmux_converters.document import Document
from specmux_converters.json_values import mapping, within
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.references import resolve_part

GROUP_VERSION_KIND: Final = "x-kubernetes-group-version-kind"

VERBS: Final = {
    "list": "list",
    "get": "get",
    "post": "create",
    "put": "update",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "deletecollection",
    "watch": "watch",
    "watchlist": "watch",
}
"""The verbs by ``x-kubernetes-action``."""

METHODS: Final = {"get": "get", "post": "create", "put": "update", "patch": "patch", "delete": "delete"}
"""Verbs of single objects, and of connections (``pods/exec``)."""

COLLECTION_METHODS: Final = {"get": "list", "post": "create", "delete": "deletecollection"}


@dataclass(frozen=True, slots=True)
class KindOperation:
    verb: str
    """The verb in Kubernetes: create, list, …"""
    method: str
    """In upper case."""
    path: str
    consumes: tuple[str, ...]
    """Media types of its request body, as written; ``*/*`` is any."""
    produces: tuple[str, ...]
    """Media types of its successful responses."""

    @property
    def is_of_subresource(self) -> bool:
        return "}/" in self.path.rpartition("{namespace}/")[2]


def kinds_named_by(holder: Any) -> list[tuple[str, str, str]]:
    """Group, version and kind that a component or an operation names; malformed ones are skipped."""
    found = []
    named = mapping(holder).get(GROUP_VERSION_KIND)
    for entry in named if isinstance(named, list) else [named]:
        match entry:
            case {"group": str(group), "version": str(version), "kind": str(kind)}:
                found.append((group, version, kind))
    return found


def operations_of(document: Document, group: str, version: str, kind: str) -> Iterator[KindOperation]:
    """In the order of their paths, without those of the deprecated ``/watch/``."""
    wanted = {"group": group, "version": version, "kind": kind}
    for path, item in sorted(mapping(document.get("paths")).items()):
        by_method = METHODS if path.rstrip("/").endswith("}") else COLLECTION_METHODS
        for method in METHODS if isinstance(item, dict) and "/watch/" not in path else ():
            operation = item.get(method)
            if not isinstance(operation, dict) or operation.get(GROUP_VERSION_KIND) != wanted:
                continue
            verb = VERBS.get(str(operation.get("x-kubernetes-action"))) or by_method.get(method, method)
            yield KindOperation(
                verb,
                method.upper(),
                path,
                _types(resolve_part(document, operation.get("requestBody"))),
                _produced_types(document, operation),
            )


def operation_of(document: Document, group: str, version: str, kind: str, verb: str) -> KindOperation | None:
    """The first operation with this verb, preferably of the resource itself. ``watch`` is a list that
    continues."""
    wanted = "list" if verb == "watch" else verb
    found = [each for each in operations_of(document, group, version, kind) if each.verb == wanted]
    return min(found, key=lambda each: each.is_of_subresource, default=None)


def _produced_types(document: Document, operation: Document) -> tuple[str, ...]:
    answers = mapping(operation.get("responses")).items()
    successful = [resolve_part(document, each) for code, each in answers if str(code).startswith("2")]
    return tuple(dict.fromkeys(name for answer in successful for name in _types(answer)))


def _types(owner: Any) -> tuple[str, ...]:
    return tuple(within(owner, "content"))
