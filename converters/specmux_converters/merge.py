"""All group-version documents as one: the client-side utility that KEP-2896 leaves to clients.

Two components of one name are the same when they say the same, and so does all that they refer to. The first
(by group-version) keeps the name, the others get ``_v2``, ``_v3``, as kube-openapi's aggregator calls them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from specmux_converters.component_names import PREFIX, Component, choose_names, component_of
from specmux_converters.document import Document
from specmux_converters.errors import InvalidDocument
from specmux_converters.group_versions import GroupVersion
from specmux_converters.losses import pointer_to
from specmux_converters.reference_walk import KINDS, METHODS, Rename, rewrite

_INHERITED: Final = ("security", "servers")
"""What a document says for all its operations, and an operation may say itself."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """A component that has another name in the merged document than in its own."""

    group_version: GroupVersion
    kind: str
    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """What one document says and the merged one does not; ``pointer`` is into the former."""

    group_version: GroupVersion
    pointer: str
    reason: str


@dataclass(frozen=True, slots=True)
class Merged:
    document: Document
    renamed: tuple[Renamed, ...]
    conflicts: tuple[Conflict, ...]


def merge(documents: Mapping[GroupVersion, Document]) -> Merged:
    """One document of all paths and components; where two disagree, the first by group-version counts.

    Raises InvalidDocument for a document whose ``paths`` or ``components`` are no objects.
    """
    ordered = {key: documents[key] for key in sorted(documents)}
    nodes = {
        Component(key, kind, name): node
        for key, document in ordered.items()
        for kind in KINDS
        for name, node in _objects(document, "components", kind).items()
    }
    merging = _Merging(choose_names(nodes))
    shared = {name: _common(ordered, name) for name in _INHERITED}
    for key, document in ordered.items():
        merging.add_frame(key, document)
        inherited: dict[str, Any] = {
            name: document[name] for name in _INHERITED if name in document and shared[name] is None
        }
        for path, item in _objects(document, "paths").items():
            merging.add_path(key, path, item, inherited)
    for component, node in nodes.items():
        merging.add_component(component, node)
    return merging.result({name: value for name, value in shared.items() if value is not None})


@dataclass(slots=True)
class _Merging:
    """The document in the making."""

    names: Mapping[Component, str]
    frame: Document = field(default_factory=dict)
    paths: dict[str, Any] = field(default_factory=dict)
    components: dict[str, dict[str, Any]] = field(default_factory=dict)
    operation_ids: set[str] = field(default_factory=set)
    conflicts: list[Conflict] = field(default_factory=list)

    def add_frame(self, key: GroupVersion, document: Document) -> None:
        for name, value in document.items():
            if name in ("paths", "components", *_INHERITED):
                continue
            kept: Any = self.frame.setdefault(name, value)
            if name == "openapi" and isinstance(value, str):
                self.frame[name] = max(str(kept), value)
            elif name == "tags" and isinstance(value, list):
                self.frame[name] = kept + [tag for tag in value if tag not in kept]
            elif kept != value:
                self._conflict(key, "another document says it differently", name)

    def add_component(self, component: Component, node: Any) -> None:
        section = self.components.setdefault(component.kind, {})
        name = self.names[component]
        if name not in section:
            section[name] = rewrite(node, KINDS[component.kind], self._renaming(component.group_version))

    def add_path(self, key: GroupVersion, path: str, item: Any, inherited: Mapping[str, Any]) -> None:
        if path[:2] == "x-":
            self.paths.setdefault(path, item)
            return
        new = rewrite(item, "path_item", self._renaming(key))
        if isinstance(new, dict):
            new = {name: self._operation(key, path, name, node, inherited) for name, node in new.items()}
        kept = self.paths.setdefault(path, new)
        if kept is not new and kept != new:
            self._conflict(key, "another document has the path", "paths", path)

    def _operation(
        self, key: GroupVersion, path: str, name: str, node: Any, inherited: Mapping[str, Any]
    ) -> Any:
        if name not in METHODS or not isinstance(node, dict):
            return node
        result = {**inherited, **node}
        if isinstance(result.get("security"), list):
            result["security"] = [self._requirement(key, each) for each in result["security"]]
        operation_id = node.get("operationId")
        if isinstance(operation_id, str) and path not in self.paths:
            if operation_id in self.operation_ids:
                self._conflict(
                    key, "another operation has the id; left out", "paths", path, name, "operationId"
                )
                del result["operationId"]
            self.operation_ids.add(operation_id)
        return result

    def _requirement(self, key: GroupVersion, requirement: Any) -> Any:
        if not isinstance(requirement, dict):
            return requirement
        return {
            self.names.get(Component(key, "securitySchemes", name), name): scopes
            for name, scopes in requirement.items()
        }

    def _renaming(self, key: GroupVersion) -> Rename:
        def rename(ref: str) -> str:
            component = component_of(ref, key)
            new = self.names.get(component) if component is not None else None
            if component is None or new is None or new == component.name:
                return ref
            head = PREFIX + component.kind + pointer_to(component.name)
            return PREFIX + component.kind + pointer_to(new) + ref.removeprefix(head)

        return rename

    def _conflict(self, key: GroupVersion, reason: str, *path: str) -> None:
        self.conflicts.append(Conflict(key, pointer_to(*path), reason))

    def result(self, shared: Mapping[str, Any]) -> Merged:
        document = {**self.frame, **shared, "paths": dict(sorted(self.paths.items()))}
        if self.components:
            sections = sorted(self.components.items())
            document["components"] = {kind: dict(sorted(section.items())) for kind, section in sections}
        renamed = tuple(
            Renamed(component.group_version, component.kind, component.name, name)
            for component, name in sorted(self.names.items())
            if name != component.name
        )
        return Merged(document, renamed, tuple(self.conflicts))


def _common(documents: Mapping[GroupVersion, Document], name: str) -> Any:
    """What all documents say for all their operations; None when they differ and each must say it itself."""
    values = [document.get(name) for document in documents.values()]
    return values[0] if values and all(value == values[0] for value in values) else None


def _objects(document: Document, *path: str) -> Mapping[str, Any]:
    """The object at a path of the document, the empty one where nothing is."""
    node: Any = document
    for token in path:
        node = node.get(token)
        if node is None:
            return {}
        if not isinstance(node, dict):
            raise InvalidDocument("an object is required", pointer=pointer_to(*path))
    return dict(node)
