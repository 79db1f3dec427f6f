"""JSON Schemas of the kinds and components of one OpenAPI v3 document."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, TypeAlias

from specmux_converters.document import Document, is_of_custom_resources
from specmux_converters.errors import InvalidDocument
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.components import Components, ReferenceGraph
from specmux_converters.json_schema.custom_resources import CustomResources
from specmux_converters.json_schema.forms import DRAFT, Mode, Schema, SchemaForm
from specmux_converters.json_schema.kinds import Kind, components_with_status, kinds_in
from specmux_converters.json_schema.typed import NEVER_NULL, STATUS, TypedConverter
from specmux_converters.references import schemas_of

_META_FIELDS: Final = frozenset((*NEVER_NULL, "metadata"))

ExampleOf: TypeAlias = Callable[[Document, Kind, Schema], dict[str, Any] | None]
"""An object that the finished schema of a kind accepts; None if there is none."""


class DocumentSchemas:
    """The schemas of one document, which is not modified. Results are cached for the lifetime of this object.

    ``example_of`` supplies ``examples`` for the schemas of kinds.
    """

    def __init__(self, document: Document, key: GroupVersion, example_of: ExampleOf | None = None) -> None:
        self.document = document
        self.example_of = example_of
        self.schemas = schemas_of(document)
        self.kinds = kinds_in(document, key)
        self.has_custom_resources = is_of_custom_resources(document)
        self._custom = frozenset(kind.component for kind in self.kinds if self.has_custom_resources)
        self._graph = ReferenceGraph(self.schemas)
        self._renderings: dict[tuple[SchemaForm, bool], _Rendering] = {}

    @cached_property
    def _with_status(self) -> frozenset[str]:
        return components_with_status(self.document)

    def is_custom(self, component: str) -> bool:
        return component in self._custom

    def kind(self, kind: Kind, form: SchemaForm) -> Schema:
        """A complete schema. Raises InvalidDocument for a component that is not an object, LimitExceeded if
        it is nested too deeply."""
        return self._rendering(kind.component, form).kind(kind)

    def component(self, name: str, form: SchemaForm) -> Schema:
        """A complete schema of a component. Raises as ``kind``."""
        rendering = self._rendering(name, form)
        return rendering.finish_schema(rendering.definition(name))

    def definition(self, name: str, form: SchemaForm) -> Schema:
        """A component as an entry of ``definitions`` under its name."""
        return self._rendering(name, form).definition(name)

    def shared_definitions(self, form: SchemaForm) -> dict[str, Schema]:
        """The schemas that definitions made so far refer to beside components of the same name."""
        rendering = self._renderings.get((form, True))
        rest = rendering.components.definitions() if rendering else {}
        return {name: schema for name, schema in rest.items() if name not in self.schemas}

    def _rendering(self, component: str, form: SchemaForm) -> _Rendering:
        if not isinstance(self.schemas.get(component), dict):
            raise InvalidDocument("not an object", pointer=f"/components/schemas/{component}")
        is_named = form.is_named or self._graph.extent(component).is_too_large
        found = self._renderings.get((form, is_named))
        if found is None:
            found = self._renderings[form, is_named] = _Rendering(
                self, form, self._graph, self._with_status, is_named
            )
        return found


class _Rendering:
    """The conversion in one form."""

    def __init__(
        self,
        owner: DocumentSchemas,
        form: SchemaForm,
        graph: ReferenceGraph,
        with_status: frozenset[str],
        is_named: bool,
    ) -> None:
        self._owner = owner
        self._mode = Mode(form.is_strict, requires=not form.is_partial)
        self.components = Components(owner.schemas, graph, self._mode, self._convert, is_named=is_named)
        self._typed = TypedConverter(self.components, with_status)
        self._custom = CustomResources(self.components, self._typed)
        self._with_status = with_status

    def kind(self, kind: Kind) -> Schema:
        body = self.components.component(kind.component, self._mode)
        properties: dict[str, Any] = dict(body.get("properties", {}))
        for name, value in (("apiVersion", kind.api_version), ("kind", kind.kind)):
            properties[name] = {**properties.get(name, {}), "type": "string", "enum": [value]}
        required = [name for name in body.get("required", ()) if name not in NEVER_NULL]
        whole: Schema = {
            **body,
            "title": f"{kind.kind} {kind.api_version}",
            "type": "object",
            "properties": properties,
        }
        if self._mode.requires:
            whole["required"] = [*NEVER_NULL, *required]
        if self._owner.is_custom(kind.component) and properties.keys() <= _META_FIELDS:
            whole.pop("additionalProperties", None)
        whole["x-kubernetes-group-version-kind"] = [
            {"group": kind.group, "version": kind.version, "kind": kind.kind}
        ]
        return self._with_example(kind, self.finish_schema(whole))

    def _with_example(self, kind: Kind, schema: Schema) -> Schema:
        """Adds an example, but to patches and fragments, of which a whole object is none."""
        if self._owner.example_of is None or not self._mode.requires:
            return schema
        example = self._owner.example_of(self._owner.document, kind, schema)
        return schema if example is None else {**schema, "examples": [example]}

    def definition(self, name: str) -> Schema:
        return self.components.component(name, self._mode)

    def _convert(self, name: str, mode: Mode) -> Schema:
        if not self._owner.is_custom(name):
            return self._typed.component(name, mode)
        relaxed = STATUS if name in self._with_status else None
        written = self._custom.body(self._owner.schemas[name], mode, relaxed=relaxed)
        return {"title": name.rpartition(".")[2], **written}

    def finish_schema(self, schema: Schema) -> Schema:
        """With the dialect first and the referenced definitions last."""
        whole = {"$schema": DRAFT, **schema}
        definitions = self.components.definitions()
        return {**whole, "definitions": definitions} if definitions else whole
