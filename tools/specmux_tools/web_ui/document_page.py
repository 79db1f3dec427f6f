"""Pages of the reader process about one document or two: a kind, a type, a group-version, two versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple
from itertools import groupby, islice
from typing import Any, Final
from urllib.parse import quote

from markupsafe import Markup

from specmux_aggregator.http.content_codings import encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.reader.assets import root_from
from specmux_aggregator.reader.requests import (
    ENTRIES_MAX,
    DocumentRequest,
    QuestionRefusal,
    ReaderAnswer,
    SiteParts,
    Wants,
)
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, api_version, split
from specmux_converters.json_values import array, mapping
from specmux_converters.operations import KindOperation, operations_of
from specmux_converters.references import schemas_of
from specmux_converters.resources import GroupVersionKind
from specmux_tools.differences.kind_comparison import KindDifference, compare_kinds
from specmux_tools.errors import SchemasError, UnknownKind
from specmux_tools.explanation.field_path import parse
from specmux_tools.explanation.kind_names import KindName, names_in
from specmux_tools.explanation.layers import component_in, layers_of, said_by
from specmux_tools.explanation.skeleton import example
from specmux_tools.explanation.tree import MOST_FIELDS, FieldPlace, find, tree_of
from specmux_tools.kinds import KindSchema, group_version_kinds
from specmux_tools.processor_time import QueryTooLong, limited_time
from specmux_tools.reader.questions import kind_called, refusal_of
from specmux_tools.reader.state import ReaderState
from specmux_tools.search_index.graph import differing_fields, summary_of
from specmux_tools.web_ui.change_pages import shown_entries
from specmux_tools.web_ui.page_frame import environment, prose, render_page, split_description
from specmux_tools.web_ui.pages import PROVENANCES
from specmux_tools.web_ui.tree import marks_text, tree_html

_OPERATIONS_MAX: Final = 60
_USES_MAX: Final = 60
_ROWS_MAX: Final = 500
RENDER_SECONDS: Final = 2.0  # of processor time


def fields_of(request: DocumentRequest, document: Document, schema: Any, name: str) -> dict[str, Any]:
    tree = tree_of(document, FieldPlace((), schema))
    types = f"{root_from(request.below)}type/{quote(request.origin.group_version)}/"
    first, rest = split_description(tree.description, is_whole=True)
    return {
        "name": name,
        "description": Markup(prose(first) + prose(rest)),  # noqa: S704  # escaped there
        "tree": Markup(tree_html(tree, types=types)),  # noqa: S704  # escaped there
        "is_cut": tree.size > MOST_FIELDS,
        "most": MOST_FIELDS,
    }


def origin_of(request: DocumentRequest, document: Document) -> dict[str, Any]:
    origin = request.origin
    return {
        "root": root_from(request.below),
        "key": origin.group_version,
        "version_text": text_of(origin.group_version),
        "owner": origin.owner,
        "provenance": PROVENANCES[origin.provenance],
        "is_described": is_described(document),
        "release": origin.release,
    }


def is_described(document: Document) -> bool:
    """Whether any schema of the document, or one of its fields, has a description."""
    return any(
        mapping(part).get("description")
        for schema in map(mapping, schemas_of(document).values())
        for part in (schema, *mapping(schema.get("properties")).values())
    )


def text_of(key: GroupVersion) -> str:
    parts = split(key)
    return key if parts is None else api_version(*parts)


def siblings_of(document: Document, key: GroupVersion) -> list[str]:
    """Kinds of the document's resources."""
    return sorted({each.kind.kind for each in names_in(document, key) if each.is_resource})


def schema_file(kind: GroupVersionKind) -> str:
    """Below ``/schemas``."""
    return f"{kind.group or 'core'}/{kind.kind.lower()}_{kind.version}.json"


def unread_of(state: ReaderState, key: GroupVersion) -> list[GroupVersion]:
    """Other published group-versions of the same group that are not in the index."""
    group = (split(key) or ("",))[0]
    absent = state.published.keys() - state.index.documents.keys() - {key}
    return sorted(each for each in absent if (split(each) or ("",))[0] == group)


def kind_page(site: SiteParts, state: ReaderState, request: DocumentRequest, document: Document) -> bytes:
    key = request.origin.group_version
    name, found = kind_called(document, key, request.name)
    operations = _operations(document, name.kind)
    return render_page(
        "kind.html",
        title=f"{name.kind.kind} {name.kind.api_version}",
        site=site,
        kind=name.kind,
        names=[each for each in (*name.names[:1], *name.short_names) if each != name.kind.kind],
        scope=_scope(operations),
        example=example(document, name.kind, found.schema),
        versions=_versions(state, name),
        unread=unread_of(state, key),
        operations=operations,
        current_kind=name.kind.kind,
        siblings=siblings_of(document, key),
        schema_file=schema_file(name.kind) if site.has_schemas and operations else "",
        entries=shown_entries(request.entries or (), group_version=key, kind=name.kind.kind),
        most_entries=ENTRIES_MAX,
        **fields_of(request, document, found.schema, name.kind.kind),
        **origin_of(request, document),
    )


def load_pages(state: ReaderState) -> None:
    """Import and compile what the first page needs: some 0.1 s of processor time."""
    for template in ("home.html", "kind.html"):
        environment().get_template(template)


def _versions(state: ReaderState, name: KindName) -> list[dict[str, Any]]:
    """The other versions of a kind, with the fields that each adds or lacks."""
    places = state.index.places  # brings the kinds up to date
    same = [
        root
        for root in state.index.kinds.get(name.kind.kind.casefold(), ())
        if (root.name.kind.group, root.name.kind.kind) == (name.kind.group, name.kind.kind)
    ]
    own = next((root for root in same if root.name.kind == name.kind), None)
    if own is None or places.positions[own.entry] < 0:
        return []
    made = []
    for root in same:
        if root is not own:
            added, dropped = differing_fields(state.index.graph, own.entry, root.entry)
            named = {"name": root.name.kind.api_version, "key": root.name.group_version}
            made.append({**named, "added": added, "dropped": dropped})
    return made


def _operations(document: Document, kind: GroupVersionKind) -> list[tuple[str, list[KindOperation]]]:
    """The operations by path."""
    found = islice(operations_of(document, *astuple(kind)), _OPERATIONS_MAX)
    return [(path, list(operations)) for path, operations in groupby(found, key=lambda each: each.path)]


def _scope(operations: list[tuple[str, list[KindOperation]]]) -> str:
    if not operations:
        return "Not a resource"
    return "Namespaced" if any("/{namespace}/" in path for path, _ in operations) else "Cluster-scoped"


def type_page(site: SiteParts, state: ReaderState, request: DocumentRequest, document: Document) -> bytes:
    """Raises UnknownKind for a component that there is not."""
    schema = schemas_of(document).get(request.name)
    if not isinstance(schema, dict):
        raise UnknownKind(f"the document has no type {request.name}", name=request.name)
    name = request.name.rpartition(".")[2]
    fields = fields_of(request, document, schema, name)
    return render_page(
        "type.html",
        title=f"{name} {request.origin.group_version}",
        site=site,
        component=request.name,
        has_fields=bool(fields["tree"]),
        uses=list(_uses(document, request.origin.group_version, request.name))[:_USES_MAX],
        current_kind="",
        siblings=siblings_of(document, request.origin.group_version),
        **fields,
        **origin_of(request, document),
    )


def _uses(document: Document, key: GroupVersion, component: str) -> Iterator[dict[str, str]]:
    """Fields of the document that are of a type, or lists or maps of it."""
    for holder, schema in schemas_of(document).items():
        properties = schema.get("properties") if isinstance(schema, dict) else None
        for name, value in properties.items() if isinstance(properties, dict) else ():
            if component in _list_components(value):
                kinds = [
                    each for each in group_version_kinds(schema) if split(key) == (each.group, each.version)
                ]
                page = f"kind/{key}/{kinds[0].kind}" if kinds else f"type/{key}/{holder}"
                yield {"name": holder.rpartition(".")[2], "field": name, "page": page}


def _list_components(schema: Any) -> Iterator[str]:
    """Components that a property's own schema names."""
    if isinstance(schema, dict):
        own = component_in(schema)
        if own is not None:
            yield own
        for each in (schema.get("items"), schema.get("additionalProperties"), *array(schema.get("allOf"))):
            yield from _list_components(each)


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
    return render_page(
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
        **origin_of(request, document),
    )


def compare_page(site: SiteParts, state: ReaderState, request: DocumentRequest, document: Document) -> bytes:
    """Raises UnknownKind."""
    other = request.other
    beside_it = None if other is None else state.document(other.hash)
    if other is None or beside_it is None:
        raise UnknownKind("no second version to compare with", name=request.name)
    left = kind_called(document, request.origin.group_version, request.name)[1]
    right = kind_called(beside_it, other.group_version, request.name)[1]
    differences, documentation = compare_kinds(left, right)
    rows = [_comparison_row(each, left, right) for each in differences[:_ROWS_MAX]]
    return render_page(
        "compare.html",
        root=root_from(request.below),
        title=f"{left.kind.kind}: {left.kind.api_version} and {right.kind.api_version}",
        site=site,
        kind=left.kind.kind,
        left={"name": left.kind.api_version, "key": left.group_version},
        right={"name": right.kind.api_version, "key": right.group_version},
        rows=rows,
        left_off=len(differences) - len(rows),
        documentation=documentation,
    )


def _comparison_row(difference: KindDifference, left: KindSchema, right: KindSchema) -> dict[str, Any]:
    return {
        "path": difference.path,
        "id": difference.path.replace("[]", "").replace("{}", ""),
        "left": _field_cells(left, difference.path),
        "right": _field_cells(right, difference.path),
        "says": difference.says,
    }


def _field_cells(kind: KindSchema, path: str) -> tuple[str, str] | None:
    """A field's type, and its marks; None where the kind has no such field."""
    try:
        place = find(kind.document, kind.schema, parse(path.replace("{}", "")))
    except SchemasError:
        return None
    field = tree_of(kind.document, place, depth=0)
    return field.type, marks_text(field)


PAGES: Final[Mapping[str, Callable[[SiteParts, ReaderState, DocumentRequest, Document], bytes]]] = {
    "kind": kind_page,
    "type": type_page,
    "compare": compare_page,
    "group-version": group_version_page,
}


def document_page(
    site: SiteParts,
    request: DocumentRequest,
    coding: Coding,
    state: ReaderState,
    version: str,
    missing: tuple[str, ...],
) -> ReaderAnswer | QuestionRefusal | Wants:
    """A page that is made of a document, and of the index."""
    if state.version != version:
        return Wants(None)
    for origin in (request.origin, request.other):
        if origin is not None and state.document(origin.hash) is None:
            return Wants((origin.group_version,))
    document = state.document(request.origin.hash)
    if document is None:  # it made room for the other
        return QuestionRefusal(503, "these documents are too large to be read together")
    try:
        with limited_time(RENDER_SECONDS):
            return ReaderAnswer(encode_body(PAGES[request.page](site, state, request, document), coding))
    except SchemasError as error:
        return refusal_of(error)
    except (QueryTooLong, RecursionError):
        return QuestionRefusal(503, "this page takes too long to make")
