"""The page of a component: its fields, and the fields that are of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from specmux_aggregator.reader.requests import DocumentRequest, SiteParts
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.references import schemas_of
from specmux_tools.errors import UnknownKind
from specmux_tools.explanation.layers import component_in
from specmux_tools.kinds import group_version_kinds
from specmux_tools.reader.state import ReaderState
from specmux_tools.web_ui.document_pages.page import fields_of, origin_of, siblings_of
from specmux_tools.web_ui.page_frame import rendered

_USES_MAX: Final = 60


def type_page(site: SiteParts, state: ReaderState, request: DocumentRequest, document: Document) -> bytes:
    """Raises UnknownKind for a component that there is not."""
    schema = schemas_of(document).get(request.name)
    if not isinstance(schema, dict):
        raise UnknownKind(f"the document has no type {request.name}", name=request.name)
    name = request.name.rpartition(".")[2]
    fields = fields_of(request, document, schema, name)
    return rendered(
        "type.html",
        title=f"{name} {request.origin.group_version}",
        site=site,
        component=request.name,
        has_fields=bool(fields["tree"]),
        uses=list(_uses(document, request.origin.group_version, request.name))[:_USES_MAX],
        current_kind="",
        siblings=siblings_of(document, request.origin.group_version),
        **fields,
        **origin_of(request),
    )


def _uses(document: Document, key: GroupVersion, component: str) -> Iterator[dict[str, str]]:
    """Fields of the document that are of a type, or lists or maps of it."""
    for holder, schema in schemas_of(document).items():
        properties = schema.get("properties") if isinstance(schema, dict) else None
        for name, value in properties.items() if isinstance(properties, dict) else ():
            if component in _referred(value):
                kinds = [
                    each for each in group_version_kinds(schema) if split(key) == (each.group, each.version)
                ]
                page = f"kind/{key}/{kinds[0].kind}" if kinds else f"type/{key}/{holder}"
                yield {"name": holder.rpartition(".")[2], "field": name, "page": page}


def _referred(schema: Any) -> Iterator[str]:
    """Components that a property's own schema names."""
    if isinstance(schema, dict):
        own = component_in(schema)
        if own is not None:
            yield own
        parts = schema.get("allOf")
        for each in (
            schema.get("items"),
            schema.get("additionalProperties"),
            *(parts if isinstance(parts, list) else ()),
        ):
            yield from _referred(each)
