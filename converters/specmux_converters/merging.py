"""Merge all group-version documents to one: the client-side utility that KEP-2896 leaves to clients.

Invariant: the result depends on the documents alone, not on their order. Names are chosen as in
kube-openapi's aggregator.
"""

# Theory of operation
#
# Documents of one server repeat the same components: ObjectMeta is in each of sixty. Merged, equal ones
# must become one, and different ones of equal name must both stay. Equality of text is not enough: two
# schemas with the text {"$ref": ".../Spec"} differ if their Specs do, and references may form cycles.
#
# So components are divided into classes by refinement of a partition. It begins with one class for each
# kind, name and text; a class is split while its members refer to members of different classes. What is
# left is the coarsest partition in which equals refer to equals, cycles included. Splitting off all but the
# largest part bounds the work (Hopcroft), where a chain of references would otherwise be walked once for
# each of its links.
#
# Names follow. The class that most documents have keeps the name, so a document that changes alone has its
# own component renamed, and the rest of the merged document stays as it was. Others get ``_v2``, ``_v3``: a
# free name is searched among all names of that kind, given ones included. References are rewritten with the
# same table.
#
# Paths are joined by path, and operations of one path by method, if the path items agree otherwise. Of two
# that conflict the first group-version in sorted order wins, and the other is reported as a Conflict. Ids
# of operations are made unique by their place, because links refer to them by id.
#
# What must never happen: a reference that means another schema than before; an order of inputs that shows
# in the result; something left out without a Conflict or a rename.

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import field
from itertools import islice
from typing import Any, Final
from urllib.parse import quote, unquote

from specmux_converters.document import Document, canonical
from specmux_converters.errors import InvalidArgument, InvalidDocument, cut
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_values import mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import pointer_to, unescape
from specmux_converters.references import KINDS, METHODS, OPERATION_IDS, PREFIX, Rename, references, rewrite


@dataclass(frozen=True, slots=True, order=True)
class Component:
    """The place of a component. ``kind``: its section of ``components`` ("schemas")."""

    group_version: GroupVersion
    kind: str
    name: str


def component_of(ref: str, group_version: GroupVersion, known: Container[Component]) -> Component | None:
    """The known component that a reference in a document refers to, as a whole or in part. A fragment may be
    escaped twice, as a pointer and as part of a URI (RFC 6901, section 6)."""
    if not ref.startswith(PREFIX):
        return None
    kind, _, rest = ref.removeprefix(PREFIX).partition("/")
    token = rest.partition("/")[0]
    for pointer in (token, unquote(token)):
        component = Component(group_version, kind, unescape(pointer))
        if component in known:
            return component
    return None


def choose_names(nodes: Mapping[Component, Any]) -> dict[Component, str]:
    """A name for each component; equal ones of one kind and name share it. Components that most documents
    have keep the name, so that a document that changes alone has its component renamed; others get ``_v2``.

    Depends only on the content of components and the sorted order of group-versions.
    """
    classes = _classes(nodes)
    taken = {(component.kind, component.name) for component in nodes}
    variants: dict[tuple[str, str], dict[int, list[Component]]] = {}
    for component in sorted(nodes):
        same = variants.setdefault((component.kind, component.name), {})
        same.setdefault(classes[component], []).append(component)
    names: dict[Component, str] = {}
    for same in variants.values():
        # of equally frequent ones, the first in order
        first, *others = sorted(same.values(), key=len, reverse=True)
        names.update({component: component.name for component in first})
        for members in others:
            name = _free_name(members[0], taken)
            taken.add((members[0].kind, name))
            names.update(dict.fromkeys(members, name))
    return names


def _free_name(component: Component, taken: set[tuple[str, str]]) -> str:
    number = 2
    while (component.kind, f"{component.name}_v{number}") in taken:
        number += 1
    return f"{component.name}_v{number}"


def _classes(nodes: Mapping[Component, Any]) -> dict[Component, int]:
    """A number for each component, equal if it and everything that it refers to are equal: the coarsest
    partition, even with cycles.

    Starts with components of equal name and text. A class is split if its members refer to different classes;
    the larger part keeps its number, so a component's number changes at most as often as its class can be
    halved (Hopcroft, 1971). Otherwise a long chain of references would take quadratic time.
    """
    edges = {component: _edges(component, node, nodes) for component, node in nodes.items()}
    users: dict[Component, list[Component]] = {}
    members: dict[tuple[str, str, bytes], set[Component]] = {}
    for component, node in nodes.items():
        for other in edges[component]:
            if other is not None:
                users.setdefault(other, []).append(component)
        members.setdefault((component.kind, component.name, canonical(node)), set()).add(component)
    classes = list(members.values())
    number = {component: index for index, each in enumerate(classes) for component in each}
    waiting = set(nodes)
    while waiting:
        parts: dict[int, dict[tuple[int | None, ...], set[Component]]] = {}
        for component in waiting:
            meant = tuple(None if other is None else number[other] for other in edges[component])
            parts.setdefault(number[component], {}).setdefault(meant, set()).add(component)
        waiting = set()
        for index, split in parts.items():
            for part in _all_but_the_largest(classes[index], list(split.values())):
                classes[index] -= part
                number.update(dict.fromkeys(part, len(classes)))
                classes.append(part)
                waiting.update(user for component in part for user in users.get(component, ()))
    return number


def _all_but_the_largest(whole: set[Component], parts: list[set[Component]]) -> list[set[Component]]:
    """``parts`` without the largest, counting the members of ``whole`` that are in none as one part."""
    if len(whole) > sum(map(len, parts)):
        parts = [*parts, whole.difference(*parts)]
    largest = max(parts, key=len)
    return [part for part in parts if part is not largest]


def _edges(component: Component, node: Any, nodes: Mapping[Component, Any]) -> list[Component | None]:
    """The components that it refers to; None for a dangling reference. Components with equal text have
    equally many, in the same order."""
    refs = sorted(references(node, KINDS.get(component.kind, "")))
    return [component_of(ref, component.group_version, nodes) for ref in refs]


_INHERITED: Final = ("security", "servers")
"""Settings of a document for all operations, which an operation may override."""


@dataclass(frozen=True, slots=True)
class ComponentRename:
    """A component whose name differs from that in its own document."""

    group_version: GroupVersion
    kind: str
    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """Something in one document that the merged one lacks; ``pointer`` is into the former."""

    group_version: GroupVersion
    pointer: str
    reason: str


@dataclass(frozen=True, slots=True)
class MergeResult:
    document: Document
    renamed: tuple[ComponentRename, ...]
    conflicts: tuple[Conflict, ...]


def merge(documents: Mapping[GroupVersion, Document]) -> MergeResult:
    """One document with all paths and components; where two conflict, the first by group-version wins.

    Raises InvalidDocument for a document whose ``paths`` or ``components`` are not objects, and without any;
    InvalidArgument if the argument is not a mapping.
    """
    _check_mapping(documents)
    if not documents:
        raise InvalidDocument("0 documents: there is nothing to merge")
    ordered = {key: documents[key] for key in sorted(documents)}
    nodes = {
        Component(key, kind, name): node
        for key, document in ordered.items()
        for kind in KINDS
        for name, node in _objects(document, "components", kind).items()
    }
    ids = {
        Component(key, OPERATION_IDS, operation_id): place
        for key, document in ordered.items()
        for operation_id, place in _operation_ids(document)
    }
    merging = _Merging(choose_names(nodes | ids))
    said = {key: merging.for_all_operations(key, document) for key, document in ordered.items()}
    shared = {name: value for name, value in said[next(iter(said))].items() if _is_common(said, name, value)}
    for key, document in ordered.items():
        merging.add_frame(key, document)
        inherited = {name: value for name, value in said[key].items() if name not in shared}
        for path, item in sorted(_objects(document, "paths").items()):
            merging.add_path(key, path, item, inherited)
    for component, node in nodes.items():
        merging.add_component(component, node)
    return merging.result(shared)


def _check_mapping(documents: Any) -> None:
    if not isinstance(documents, Mapping):
        kind = type(documents).__name__
        raise InvalidArgument(f"a mapping of group-versions to documents is wanted, not a {kind}")


@dataclass(slots=True)
class _Merging:
    """The document being built."""

    names: Mapping[Component, str]
    frame: Document = field(default_factory=dict)
    paths: dict[str, Any] = field(default_factory=dict)
    components: dict[str, Any] = field(default_factory=dict)
    operation_ids: set[str] = field(default_factory=set)
    conflicts: list[Conflict] = field(default_factory=list)

    def for_all_operations(self, key: GroupVersion, document: Document) -> dict[str, Any]:
        """``security`` and ``servers``, with the merged document's names. Empty servers count as absent."""
        said = {name: document[name] for name in _INHERITED if document.get(name) is not None}
        if said.get("servers") == []:
            del said["servers"]
        renamed: dict[str, Any] = rewrite(said, "operation", self._renaming(key))
        return renamed

    def add_frame(self, key: GroupVersion, document: Document) -> None:
        for name, value in sorted(document.items()):
            if name == "components":
                self._add_sections(key, _objects(document, name))
            elif name not in ("paths", *_INHERITED):
                self._add_field(key, name, value)

    def _add_field(self, key: GroupVersion, name: str, value: Any) -> None:
        kept = self.frame.setdefault(name, value)
        if name == "openapi" and isinstance(value, str) and isinstance(kept, str):
            self.frame[name] = max(kept, value, key=_version)
            if _version(kept)[:2] != _version(value)[:2]:
                self._conflict(key, f"another document is of {cut(kept)}", name)
        elif name == "tags" and isinstance(value, list) and isinstance(kept, list):
            self.frame[name] = self._tags(key, kept, value)
        elif not _is_same(kept, value):
            self._conflict(key, "another document says it differently", name)

    def _tags(self, key: GroupVersion, kept: list[Any], new: list[Any]) -> list[Any]:
        if kept is new:
            return kept
        known = {canonical(_tag_name(tag)): tag for tag in reversed(kept)}
        count = len(known)
        for index, tag in enumerate(new):
            if not _is_same(known.setdefault(canonical(_tag_name(tag)), tag), tag):
                self._conflict(key, "another document says it differently", "tags", str(index))
        return [*kept, *islice(known.values(), count, None)]

    def _add_sections(self, key: GroupVersion, components: Mapping[str, Any]) -> None:
        """Members of ``components`` without references: ``x-*`` and unknown sections."""
        for name, value in sorted(components.items()):
            if name not in KINDS and not _is_same(self.components.setdefault(name, value), value):
                self._conflict(key, "another document says it differently", "components", name)

    def add_component(self, component: Component, node: Any) -> None:
        section = self.components.setdefault(component.kind, {})
        name = self.names[component]
        if name not in section:
            section[name] = rewrite(node, KINDS[component.kind], self._renaming(component.group_version))

    def add_path(self, key: GroupVersion, path: str, item: Any, inherited: Mapping[str, Any]) -> None:
        """If two documents have a path, its operations are combined if the path items otherwise agree."""
        new = item if path[:2] == "x-" else rewrite(item, "path_item", self._renaming(key))
        if path[:2] == "x-" or not isinstance(new, dict):
            if not _is_same(self.paths.setdefault(path, new), new):
                self._conflict(key, "another document has the path", "paths", path)
            return
        frame = {name: node for name, node in new.items() if name not in METHODS}
        said = {name: value for name, value in inherited.items() if name not in frame}
        kept = self.paths.setdefault(path, frame)
        if not isinstance(kept, dict) or not _is_same(
            {name: node for name, node in kept.items() if name not in METHODS}, frame
        ):
            self._conflict(key, "another document has the path", "paths", path)
            return
        for name in METHODS:
            if name not in new:
                continue
            operation = {**said, **new[name]} if isinstance(new[name], dict) else new[name]
            if name not in kept:
                kept[name] = self._with_unique_id(key, path, name, operation)
            elif not _is_same(kept[name], operation):
                self._conflict(key, "another document has the operation", "paths", path, name)

    def _with_unique_id(self, key: GroupVersion, path: str, name: str, operation: Any) -> Any:
        """Ids are already unique by name, except those that one document repeats."""
        operation_id = mapping(operation).get("operationId")
        if not isinstance(operation_id, str):
            return operation
        if operation_id not in self.operation_ids:
            self.operation_ids.add(operation_id)
            return operation
        self._conflict(key, "another operation has the id; left out", "paths", path, name, "operationId")
        return {field: value for field, value in operation.items() if field != "operationId"}

    def _renaming(self, key: GroupVersion) -> Rename:
        def rename(ref: str) -> str:
            component = component_of(ref, key, self.names)
            new = self.names[component] if component is not None else None
            if component is None or new is None or new == component.name:
                return ref
            token, slash, rest = ref.removeprefix(f"{PREFIX}{component.kind}/").partition("/")
            is_plain = f"/{token}" == pointer_to(component.name)
            pointer = pointer_to(new) if is_plain else quote(pointer_to(new))
            return f"{PREFIX}{component.kind}{pointer}{slash}{rest}"

        return rename

    def _conflict(self, key: GroupVersion, reason: str, *path: str) -> None:
        self.conflicts.append(Conflict(key, pointer_to(*path), reason))

    def result(self, shared: Mapping[str, Any]) -> MergeResult:
        document = {**self.frame, **shared, "paths": dict(sorted(self.paths.items()))}
        if self.components:
            sections = sorted(self.components.items())
            document["components"] = {
                kind: dict(sorted(section.items())) if kind in KINDS else section
                for kind, section in sections
            }
        renamed = tuple(
            ComponentRename(component.group_version, component.kind, component.name, name)
            for component, name in sorted(self.names.items())
            if name != component.name
        )
        return MergeResult(document, renamed, tuple(self.conflicts))


def _is_common(said: Mapping[GroupVersion, Mapping[str, Any]], name: str, value: Any) -> bool:
    """Whether all documents state it for all operations; otherwise each operation must state it."""
    return all(name in each and _is_same(each[name], value) for each in said.values())


def _operation_ids(document: Document) -> Iterator[tuple[str, Any]]:
    """The ids with the places of their operations: an operation is identified by its place."""
    for path, item in sorted(_objects(document, "paths").items()):
        for method in METHODS if isinstance(item, dict) and path[:2] != "x-" else ():
            operation_id = mapping(item.get(method)).get("operationId")
            if isinstance(operation_id, str):
                yield operation_id, [path, method]


def _is_same(one: Any, other: Any) -> bool:
    return one is other or canonical(one) == canonical(other)


def _tag_name(tag: Any) -> Any:
    return tag.get("name") if isinstance(tag, dict) else tag


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() and len(part) < 9 else 0 for part in text.split("."))


def _objects(document: Document, *path: str) -> Mapping[str, Any]:
    """The object at a path of the document; an empty one if absent."""
    node: Any = document
    for token in path:
        node = node.get(token)
        if node is None:
            return {}
        if not isinstance(node, dict):
            raise InvalidDocument("an object is required", pointer=pointer_to(*path))
    return dict(node)
