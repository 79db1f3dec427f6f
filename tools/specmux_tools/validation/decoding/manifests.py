"""Look into manifests before they are checked: the group-versions they need, and who defines kinds."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from specmux_converters.document import Document
from specmux_converters.json_values import array, objects, within
from specmux_converters.lazy.patterns import pattern
from specmux_converters.resources import GroupVersionKind
from specmux_tools.validation.decoding.body import is_broken_separator, objects_in, read
from specmux_tools.validation.decoding.streams import StreamPart
from specmux_tools.validation.decoding.type_meta import parse_group_version
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.requests import BodyFormat

_DEFINITION: Final = b"CustomResourceDefinition"
_API_VERSION: Final = pattern(rb"""apiVersion['"]?[ \t]*:\s*['"]?([^'"\s,}]+)""")
_KIND: Final = pattern(rb"""kind['"]?[ \t]*:\s*['"]?([^'"\s,}]+)""")

_MARKS: Final = tuple(
    re.compile(rb"""(?m)(?:^|[{,])[ \t]*['"]?%s['"]?[ \t]*:""" % name) for name in (b"apiVersion", b"kind")
)
_LOCAL_CONFIG: Final = "config.kubernetes.io/local-config"
_CLIENT_GROUP: Final = "kustomize.config.k8s.io/"
"""The group of files that a client reads, and no apiserver."""


def group_versions_in(part: StreamPart) -> Iterator[tuple[str, str]]:
    """Groups and versions that the objects may be of; of what they refer to, too.

    Found in the text, which costs less than reading it; CBOR is read.
    """
    if part.format is BodyFormat.CBOR:
        texts: Iterable[str] = _api_versions(_value(part))
    else:
        texts = {found.decode("utf-8", "replace") for found in _API_VERSION.findall(part.data)}
    for text in sorted(texts):
        try:
            group, version = parse_group_version(text)
        except Undecodable:
            continue
        if version:
            yield group, version


def has_only_kinds(part: StreamPart, kinds: Collection[str]) -> bool:
    """Whether every object is of one of these kinds, as far as the text tells; what it refers to counts,
    too."""
    found = {each.decode("utf-8", "replace") for each in _KIND.findall(part.data)}
    return bool(found) and found <= set(kinds)


def definitions_in(parts: Iterable[StreamPart]) -> list[Document]:
    """The CustomResourceDefinitions among the objects."""
    found = (each for part in parts if _DEFINITION in part.data for each in objects_in(_value(part)))
    return [each for each in found if each.get("kind") == _DEFINITION.decode()]


def defined_kind(definition: Document) -> tuple[str, str] | None:
    """The group and the kind, if a definition says them."""
    match definition.get("spec"):
        case {"group": str(group), "names": {"kind": str(kind)}}:
            return group, kind
    return None


def is_object(part: StreamPart) -> bool:
    """Whether a document means to be a Kubernetes object: one that cannot be read, or lacks a field, may."""
    try:
        value = read(part.data, part.format).value
    except Undecodable:
        if is_broken_separator(part.data):
            return True
        data = part.data.replace(b"\0", b"")  # UTF-16 without a mark of its order
        return all(mark.search(data) for mark in _MARKS)
    if not isinstance(value, dict) or _CLIENT_GROUP in str(value.get("apiVersion")):
        return False
    found = [name for name in ("apiVersion", "kind") if name in value]
    return len(found) == 2 or (bool(found) and "metadata" in value)


def is_local_config(part: StreamPart) -> bool:
    """Whether it is for tools on this side alone: kustomize and kpt never send it to an apiserver."""
    if _LOCAL_CONFIG.encode() not in part.data:
        return False
    said = within(_value(part), "metadata", "annotations").get(_LOCAL_CONFIG)
    return isinstance(said, str) and said != "false"


def preserving_kinds(definitions: Iterable[Document]) -> list[GroupVersionKind]:
    """The kinds of definitions that keep unknown fields altogether."""
    return [kind for definition in definitions for kind in _preserving(definition.get("spec"))]


def _preserving(spec: Any) -> Iterator[GroupVersionKind]:
    match spec:
        case {
            "group": str(group),
            "preserveUnknownFields": True,
            "names": {"kind": str(kind)},
            "versions": list(versions),
        }:
            for version in objects(versions):
                if isinstance(version.get("name"), str):
                    yield GroupVersionKind(group, version["name"], kind)


def _value(part: StreamPart) -> Any:
    try:
        return read(part.data, part.format).value
    except Undecodable:
        return None


def _api_versions(value: Any) -> set[str]:
    if not isinstance(value, dict):
        return set()
    found = {value.get("apiVersion")}
    for item in array(value.get("items")):
        found |= _api_versions(item)
    return {each for each in found if isinstance(each, str)}
