"""Many group-version documents as one: KEP-2896's "client side utility to aggregate all the endpoints".

The converters have a merge of their own, with the rules of a conversion; a client installs neither. This one
only unites. Components of one name and one meaning are one; others are renamed ``_v2``, ``_v3``… in the order
of the group-versions, so that the result depends on nothing but its input, and every renaming is reported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import orjson

from specmux_cache.results import Merged

Name: TypeAlias = tuple[str, str]
"""(section, name) of a component."""

COMPONENTS: Final = "#/components/"
METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})


class Names:
    """The names of components in the merged document."""

    def __init__(self) -> None:
        self._given: dict[tuple[Name, bytes], str] = {}
        self._used: set[Name] = set()

    def name(self, name: Name, meaning: bytes) -> str:
        """Of a component with this meaning: its own name, or the first ``_vN`` of it that is free."""
        if (name, meaning) not in self._given:
            section, wanted = name
            given, number = wanted, 1
            while (section, given) in self._used:
                number += 1
                given = f"{wanted}_v{number}"
            self._used.add((section, given))
            self._given[name, meaning] = given
        return self._given[name, meaning]


def merge_documents(documents: Mapping[str, Mapping[str, Any]], *, title: str = "Kubernetes") -> Merged:
    """One OpenAPI 3.0 document of these, by group-version. Input documents are not changed."""
    components: dict[str, dict[str, Any]] = {}
    paths: dict[str, dict[str, Any]] = {}
    taken = Names()
    renamed: dict[str, Mapping[str, str]] = {}
    dropped: dict[str, tuple[str, ...]] = {}
    security: list[Any] = []
    for group_version in sorted(documents):
        document = documents[group_version]
        own = _components(document)
        names = {name: taken.name(name, meaning) for name, meaning in _meanings(own).items()}
        for (section, old), new in names.items():
            components.setdefault(section, {}).setdefault(new, _rewritten(own[section, old], names))
        changed = {
            f"{section}/{old}": f"{section}/{new}" for (section, old), new in names.items() if old != new
        }
        if changed:
            renamed[group_version] = MappingProxyType(changed)
        lost = tuple(_add_paths(paths, document, names))
        if lost:
            dropped[group_version] = lost
        security.extend(entry for entry in document.get("security") or () if entry not in security)
    merged: dict[str, Any] = {"openapi": "3.0.0", "info": {"title": title, "version": "unversioned"}}
    if security:
        merged["security"] = security
    merged["paths"] = dict(sorted(paths.items()))
    merged["components"] = {section: dict(sorted(own.items())) for section, own in sorted(components.items())}
    return Merged(merged, MappingProxyType(renamed), MappingProxyType(dropped))


def _components(document: Mapping[str, Any]) -> dict[Name, Any]:
    sections = document.get("components")
    if not isinstance(sections, dict):
        return {}
    return {
        (section, name): value
        for section, own in sections.items()
        if isinstance(own, dict)
        for name, value in own.items()
    }


def _meanings(components: Mapping[Name, Any]) -> dict[Name, bytes]:
    """A digest of each component and of all that it refers to: equal text can mean another thing."""
    texts = {
        name: orjson.dumps([name, value], option=orjson.OPT_SORT_KEYS) for name, value in components.items()
    }
    direct = {
        name: [reference for reference in _references(value) if reference in components]
        for name, value in components.items()
    }
    found = {}
    for name in components:
        reached, open_ = {name}, [name]
        while open_:
            further = [other for other in direct[open_.pop()] if other not in reached]
            reached.update(further)
            open_.extend(further)
        digest = hashlib.sha256(texts[name])
        for other in sorted(reached - {name}):
            digest.update(texts[other])
        found[name] = digest.digest()
    return found


def _add_paths(
    paths: dict[str, dict[str, Any]], document: Mapping[str, Any], names: Mapping[Name, str]
) -> Iterator[str]:
    """Add the document's paths; yields the operations that another document has had already, differently."""
    own = document.get("paths")
    for path, item in own.items() if isinstance(own, dict) else ():
        if not isinstance(item, dict):
            continue
        rewritten = _rewritten(item, names)
        present = paths.setdefault(path, {})
        for member, value in rewritten.items():
            if present.setdefault(member, value) != value:
                yield f"{member.upper()} {path}" if member in METHODS else f"{member} of {path}"


def _references(tree: Any) -> Iterator[Name]:
    if isinstance(tree, dict):
        reference = tree.get("$ref")
        if isinstance(reference, str) and (name := _referred(reference)) is not None:
            yield name
        for value in tree.values():
            yield from _references(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _references(value)


def _referred(reference: str) -> Name | None:
    if not reference.startswith(COMPONENTS):
        return None
    section, slash, name = reference.removeprefix(COMPONENTS).partition("/")
    return (section, name.replace("~1", "/").replace("~0", "~")) if slash else None


def _rewritten(tree: Any, names: Mapping[Name, str]) -> Any:
    if isinstance(tree, list):
        return [_rewritten(value, names) for value in tree]
    if not isinstance(tree, dict):
        return tree
    copy = {member: _rewritten(value, names) for member, value in tree.items()}
    reference = tree.get("$ref")
    name = _referred(reference) if isinstance(reference, str) else None
    if name is not None and name in names:
        escaped = names[name].replace("~", "~0").replace("/", "~1")
        copy["$ref"] = f"{COMPONENTS}{name[0]}/{escaped}"
    return copy
