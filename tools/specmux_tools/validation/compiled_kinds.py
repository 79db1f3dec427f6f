"""Compiled kinds, created on demand and cached, and those whose definition an apiserver rejects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from specmux_converters.crd.keywords import PRESERVE_UNKNOWN_FIELDS
from specmux_converters.crd.templates import META_SCHEMAS, PREFIX, reference
from specmux_converters.document import Document, is_of_custom_resources
from specmux_converters.group_versions import join_group_version
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.references import schemas_of
from specmux_converters.releases import NEWEST
from specmux_converters.resources import APIResource, GroupVersionKind, Resources
from specmux_converters.synthesis import synthesise
from specmux_tools.kinds import DocumentSet, KindSchema
from specmux_tools.validation.decoding.manifests import defined_kind
from specmux_tools.validation.decoding.typed_nodes import Node
from specmux_tools.validation.decoding.typed_schemas import TypedSchemas
from specmux_tools.validation.definitions.definition_fault import DEFINITION
from specmux_tools.validation.schema.structural import Structural, structural

if TYPE_CHECKING:  # what checks custom resources is a third of a start, and imported for the first of them
    from specmux_tools.validation.rules.rule_tree import RuleNode
    from specmux_tools.validation.schema.compiling import SchemaCompiler
    from specmux_tools.validation.schema.nodes import SchemaNode


LIST: Final = GroupVersionKind("", "v1", "List")
"""Described by no document: kubectl's kind for several objects."""


_OPEN: Final[Document] = {PRESERVE_UNKNOWN_FIELDS: True}


def _describe_known(kind: GroupVersionKind, metadata: str, **fields: Document) -> KindSchema:
    type_meta: Document = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    schema: Document = {
        "type": "object",
        "properties": {**type_meta, "metadata": reference(PREFIX + metadata), **fields},
    }
    document: Document = {"components": {"schemas": {**META_SCHEMAS, kind.kind: schema}}}
    return KindSchema(kind, join_group_version(kind.group, kind.version), kind.kind, schema, document)


_UNDESCRIBED: Final[Mapping[GroupVersionKind, KindSchema]] = {
    LIST: _describe_known(LIST, "ListMeta", items={"type": "array", "items": {}}),
    DEFINITION: _describe_known(DEFINITION, "ObjectMeta", spec=_OPEN, status=_OPEN),
}
"""Kinds that are judged where no document describes them, too: what is wrong with a definition is known
without its types, and none of its lists is merged by a key."""


@dataclass(frozen=True, slots=True)
class TypedKind:
    """A built-in kind, or one of an extension apiserver."""

    kind: GroupVersionKind
    node: Node
    needs_name: bool = False
    """Whether its objects are stored, and so have names."""
    resource: str = ""
    """Its plural name, if a document states it."""


@dataclass(frozen=True, slots=True)
class CustomKind:
    kind: GroupVersionKind
    structural: Structural
    schema: SchemaNode
    rules: RuleNode
    preserves_unknown: bool = False
    """``spec.preserveUnknownFields`` of the definition, which documents lack."""
    has_status: bool = False
    """Whether status is a subresource, which is ignored on create."""
    resource: str = ""

    @property
    def reads_name(self) -> bool:
        """Whether the name of an object can decide what its schema and rules say."""
        from specmux_tools.validation.rules.rule_tree import reads_metadata

        metadata = self.structural.properties.get("metadata")
        restricts = metadata is not None and bool(metadata.properties)
        return restricts or self.schema.branches is not None or reads_metadata(self.rules)


CompiledKind: TypeAlias = TypedKind | CustomKind


class Kinds:
    """``preserving``: kinds whose definitions have ``spec.preserveUnknownFields: true``. ``definitions``:
    each is checked when the first object of its kind is validated."""

    def __init__(
        self,
        documents: DocumentSet,
        preserving: frozenset[GroupVersionKind],
        definitions: Iterable[Document] = (),
        *,
        minor: int = NEWEST,
    ) -> None:
        self._documents = documents
        self._preserving = preserving
        self._minor = minor
        # By identity of the documents, of which a group-version may have two; the set keeps them alive.
        self._typed: dict[int, TypedSchemas] = {}
        self._compilers: dict[int, SchemaCompiler] = {}
        self._resources: dict[int, Resources] = {}
        self._found: dict[GroupVersionKind, CompiledKind | None] = {}
        self._unchecked = {kind: each for each in definitions if (kind := defined_kind(each)) is not None}
        self._refusals: dict[tuple[str, str], str] = {}

    def describe(self, kind: GroupVersionKind) -> KindSchema | None:
        """The kind's schema in a document, or what is known of it without one."""
        return self._documents.find(kind) or _UNDESCRIBED.get(kind)

    def find(self, kind: GroupVersionKind) -> CompiledKind | None:
        if kind not in self._found:
            described = self.describe(kind)
            if described is None:
                return None
            if described is _UNDESCRIBED.get(kind):
                node = self._typed_schemas(described).node(described.component)
                self._found[kind] = TypedKind(kind, node, needs_name=kind == DEFINITION)
            else:
                self._found[kind] = self._compile(described)
        return self._found[kind]

    def refusal(self, kind: GroupVersionKind) -> str | None:
        """Why objects of the kind are not validated; None if they can be."""
        key = (kind.group, kind.kind)
        if self._documents.is_built_in(kind):
            return None
        if key in self._unchecked:
            from specmux_tools.validation.definitions.faults import definition_faults

            faults = definition_faults(self._unchecked.pop(key), minor=self._minor)
            if faults:
                more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
                self._refusals[key] = f"not checked: its definition is refused: {faults[0].text}{more}"
        return self._refusals.get(key)

    def _compile(self, described: KindSchema) -> CompiledKind:
        resource = self._resource(described)
        plural = resource.name if resource is not None else ""
        if not is_of_custom_resources(described.document):
            node = self._typed_schemas(described).node(described.component)
            needs_name = resource is not None and {"get", "create"} <= set(resource.verbs)
            return TypedKind(described.kind, node, needs_name, plural)
        from specmux_tools.validation.rules.rule_tree import rule_tree

        schemas = schemas_of(described.document)
        return CustomKind(
            described.kind,
            structural(described.schema, schemas),
            self._compiler(described).root(described.schema),
            rule_tree(described.schema, schemas),
            described.kind in self._preserving,
            resource is not None and any(each.name == "status" for each in resource.subresources),
            plural,
        )

    def _typed_schemas(self, described: KindSchema) -> TypedSchemas:
        key = id(described.document)
        if key not in self._typed:
            self._typed[key] = TypedSchemas(described.document)
        return self._typed[key]

    def _compiler(self, described: KindSchema) -> SchemaCompiler:
        key = id(described.document)
        if key not in self._compilers:
            from specmux_tools.validation.schema.compiling import SchemaCompiler

            self._compilers[key] = SchemaCompiler(schemas_of(described.document), minor=self._minor)
        return self._compilers[key]

    def _resource(self, described: KindSchema) -> APIResource | None:
        key = id(described.document)
        if key not in self._resources:
            self._resources[key] = synthesise(described.document, described.group_version)
        found = (each for each in self._resources[key] if each.kind == described.kind)
        return next(found, None)
