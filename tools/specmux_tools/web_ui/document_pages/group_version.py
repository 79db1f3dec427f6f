"""The page of a group-version: its kinds, its document, JSON Schemas and changes."""

from __future__ import annotations

from specmux_aggregator.reader.requests import DocumentRequest, SiteParts
from specmux_converters.document import Document
from specmux_converters.group_versions import split
from specmux_converters.references import schemas_of
from specmux_tools.explanation.kind_names import names_in
from specmux_tools.explanation.layers import layers_of, said_by
from specmux_tools.kinds import group_version_kinds
from specmux_tools.reader.state import ReaderState
from specmux_tools.search_index.graph import summary_of
from specmux_tools.web_ui.change_pages import shown_entries
from specmux_tools.web_ui.document_pages.page import origin_of, schema_file, text_of, unread_of
from specmux_tools.web_ui.page_frame import rendered


def group_version_page(
    site: SiteParts, state: ReaderState, request: DocumentRequest, document: Document
) -> bytes:
    key = request.origin.group_version
    names = sorted(names_in(document, key), key=lambda name: name.kind)
    schemas = schemas_of(document)
    described = {
        kind: said_by(layers_of(schemas, schema)).get("description")
        for schema in schemas.values()
        if isinstance(schema, dict)
        for kind in group_version_kinds(schema)
    }
    parts = split(key)
    group = parts[0] if parts else ""
    return rendered(
        "group_version.html",
        title=text_of(key),
        site=site,
        is_group=parts is not None,
        group=group,
        kinds=[
            {
                "name": name.kind.kind,
                "also": [*name.names[:1], *name.short_names],
                "summary": summary_of(str(described.get(name.kind) or "")),
                "schema_file": schema_file(name.kind),
            }
            for name in names
            if name.is_resource
        ],
        versions=[
            {"key": each, "name": (split(each) or ("", ""))[1]}
            for each in sorted(state.index.documents)
            if parts is not None and (split(each) or (None,))[0] == group
        ],
        unread=unread_of(state, key),
        entries=shown_entries(request.entries or (), group_version=key),
        hash=request.origin.hash,
        **origin_of(request),
    )
