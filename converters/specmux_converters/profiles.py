"""Reduced forms of an OpenAPI v3 document (KEP-2896): with repeated parts as components, or with schemas
only.

Both are valid OpenAPI 3.0. ``components`` is equivalent to the document; ``schemas`` omits all paths.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from specmux_converters.document import Document, canonical
from specmux_converters.group_versions import group_version_of, split
from specmux_converters.json_values import mapping, objects
from specmux_converters.media_types import JSON, JSON_COMPONENTS, JSON_SCHEMAS, MediaType
from specmux_converters.operations import GROUP_VERSION_KIND
from specmux_converters.references import METHODS, reachable, schemas_of

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
_KINDS: Final = ("parameters", "requestBodies", "responses")


def schemas_only(document: Document) -> Document:
    """Without paths, and without what has no meaning beside them: components of other sections, kinds of
    other group-versions that no operation is about (``Status``, ``APIResourceList``) with what they alone
    refer to, and the other group-versions of ``DeleteOptions`` and ``WatchEvent``, which apiservers list no
    longer since Kubernetes 1.36."""
    paths = mapping(document.get("paths"))
    schemas = schemas_of(document)
    own = _group_versions(paths)
    if own:
        subjects = [*_subjects(paths)]
        answers = reachable(schemas, [n for n, each in schemas.items() if _is_foreign(each, own, subjects)])
        left_out = answers - reachable(schemas, schemas.keys() - answers)
        schemas = {
            name: _with_own_kinds(schema, own) for name, schema in schemas.items() if name not in left_out
        }
    rest = {key: value for key, value in document.items() if key not in ("paths", "components")}
    return {**rest, "paths": {}, "components": {"schemas": schemas}}


_GroupVersions: TypeAlias = tuple[tuple[str, str], ...]


def _group_versions(paths: Mapping[str, Any]) -> _GroupVersions:
    keys = {group_version_of(path) for path in paths}
    return tuple(found for key in keys if key and (found := split(key)))


def _subjects(paths: Mapping[str, Any]) -> Iterator[Any]:
    """The kinds that operations are about."""
    for item in paths.values():
        for method in METHODS & item.keys() if isinstance(item, dict) else ():
            if isinstance(item[method], dict):
                yield item[method].get(GROUP_VERSION_KIND)


def _kinds(schema: Any) -> list[Any]:
    return objects(mapping(schema).get(GROUP_VERSION_KIND))


def _is_own(kind: Document, own: _GroupVersions) -> bool:
    return (kind.get("group"), kind.get("version")) in own


def _is_foreign(schema: Any, own: _GroupVersions, subjects: Collection[Any]) -> bool:
    kinds = _kinds(schema)
    return bool(kinds) and not any(_is_own(kind, own) or kind in subjects for kind in kinds)


def _with_own_kinds(schema: Any, own: _GroupVersions) -> Any:
    kinds = _kinds(schema)
    kept = [kind for kind in kinds if _is_own(kind, own)]
    return {**schema, GROUP_VERSION_KIND: kept} if kept and len(kept) < len(kinds) else schema


def with_shared_components(document: Document) -> Document:
    """Parameters, responses and bodies that occur twice become components."""
    paths = document.get("paths")
    if not isinstance(paths, dict):
        return document
    counts: Counter[tuple[str, bytes]] = Counter()

    def count(kind: str, label: str, node: Any) -> Any:
        if _is_inline(node):
            counts[kind, canonical(node)] += 1
        return node

    for item in paths.values():
        _rewrite_path_item(item, count)
    known = mapping(document.get("components"))
    made: dict[str, dict[str, Any]] = {
        kind: dict(section) if isinstance(section := known.get(kind), dict) else {} for kind in _KINDS
    }

    def written(kind: str, label: str, node: Any) -> Any:
        if not _is_inline(node) or counts[kind, text := canonical(node)] < 2:
            return node
        digest = urlsafe_b64encode(sha256(text).digest()[:6]).decode()
        name = f"{_NOT_IN_NAMES.sub('_', label)}-{digest}"
        if made[kind].setdefault(name, node) != node:
            return node
        return {"$ref": f"#/components/{kind}/{name}"}

    shared = {path: _rewrite_path_item(item, written) for path, item in paths.items()}
    sections = {kind: dict(sorted(members.items())) for kind, members in made.items() if members}
    return {**document, "paths": shared, "components": {**known, **sections}}


PROFILES: Final[Mapping[MediaType, Callable[[Document], Document]]] = MappingProxyType(
    {JSON_SCHEMAS: schemas_only, JSON_COMPONENTS: with_shared_components}
)
"""The profiles by the media type that requests them."""


def media_type_of(profile: str) -> MediaType:
    return MediaType(f"{JSON};profile={profile}")


_Write = Callable[[str, str, Any], Any]


def _rewrite_path_item(item: Any, write: _Write) -> Any:
    """A path item with its parameters, bodies and responses replaced by ``write``."""
    if not isinstance(item, dict):
        return item
    result = _with_parameters(item, write)
    for method in METHODS:
        operation = item.get(method)
        if not isinstance(operation, dict):
            continue
        made = _with_parameters(operation, write)
        if "requestBody" in made:
            made["requestBody"] = write("requestBodies", "body", made["requestBody"])
        responses = made.get("responses")
        if isinstance(responses, dict):
            made["responses"] = {
                status: node if status.startswith("x-") else write("responses", status, node)
                for status, node in responses.items()
            }
        result[method] = made
    return result


def _with_parameters(node: Document, write: _Write) -> Document:
    result = dict(node)
    parameters = node.get("parameters")
    if isinstance(parameters, list):
        result["parameters"] = [
            write("parameters", str(each.get("name")), each) if isinstance(each, dict) else each
            for each in parameters
        ]
    return result


def _is_inline(node: Any) -> bool:
    return isinstance(node, dict) and "$ref" not in node
