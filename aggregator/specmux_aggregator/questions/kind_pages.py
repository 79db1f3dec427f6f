"""Jobs of the process that end in a page about one kind, one type, one group-version, or two versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from itertools import groupby, islice
from typing import Any, Final
from urllib.parse import quote

from markupsafe import Markup

from specmux_aggregator.http.content_codings import encoded
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.questions.answers import (
    QuestionRefusal,
    ReaderAnswer,
    kind_called,
    refusal_of,
)
from specmux_aggregator.questions.change_pages import ENTRIES_MAX, shown_entries
from specmux_aggregator.questions.frames import SiteParts, rendered, root_from
from specmux_aggregator.questions.pages import PROVENANCES, version_text
from specmux_aggregator.questions.prose import beginning, prose
from specmux_aggregator.questions.state import QueryTooLong, ReaderState, Wants, limited_time
from specmux_aggregator.questions.tree import marks_text, tree_html
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_converters.operations import KindOperation, operations_of
from specmux_schemas.differences.kind_comparison import KindDifference, compare_kinds
from specmux_schemas.errors import SchemasError, UnknownKind
from specmux_schemas.explanation.example import example
from specmux_schemas.explanation.field_path import parse
from specmux_schemas.explanation.kind_names import KindName, names_in
from specmux_schemas.explanation.layers import component_in, layers_of, said_by
from specmux_schemas.explanation.tree import MOST_FIELDS, Field, FieldPlace, find, tree_of
from specmux_schemas.kinds import KindSchema, group_version_kinds
from specmux_schemas.references import schemas_of
from specmux_schemas.resources import GroupVersionKind, api_version, split
from specmux_schemas.search_index.graph import summary_of
from specmux_schemas.search_index.versions import beside

RENDER_SECONDS: Final = 2.0  # of processor time
_OPERATIONS_MAX: Final = 60
_USES_MAX: Final = 60
_ROWS_MAX: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOrigin:
    """A published document, and where it comes from."""

    group_version: GroupVersion
    hash: str
    owner: str
    provenance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRequest:
    """``below``: the path of the page below the home page. ``name``: a kind, or a component; "" where the
    page is about the whole. ``other``: the document of a second version."""

    below: str
    origin: DocumentOrigin
    name: str = ""
    other: DocumentOrigin | None = None
    entries: tuple[bytes, ...] | None = None
    """Of the group-version in the change log, the newest first; None where no log is kept."""


Page = Callable[[SiteParts, ReaderState, DocumentRequest, Document], bytes]


def document_page(
    page: Page,
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
            return ReaderAnswer(encoded(page(site, state, request, document), coding))
    except SchemasError as error:
        return refusal_of(error)
    except (QueryTooLong, RecursionError):
        return QuestionRefusal(503, "this page takes too long to make")


def kind_page(site: SiteParts, state: ReaderState, request: DocumentRequest, document: Document) -> bytes:
    key = request.origin.group_version
    name, found = kind_called(document, key, request.name)
    operations = _operations(document, name.kind)
    siblings = {each.kind.kind for each in names_in(document, key) if each.is_resource}
    return rendered(
        "kind.html",
        title=f"{name.kind.kind} {version_text(name.kind)}",
        site=site,
        kind=name.kind,
        names=[each for each in (*name.names[:1], *name.short_names) if each != name.kind.kind],
        scope=_scope(operations),
        example=example(document, name.kind, found.schema),
        versions=_versions(state, name),
        unread=_unread(state, key),
        operations=operations,
        siblings=sorted(siblings),
        schema_file=schema_file(name.kind) if site.has_schemas and operations else "",
        entries=shown_entries(request.entries or (), group_version=key, kind=name.kind.kind),
        most_entries=ENTRIES_MAX,
        **_fields(request, document, found.schema, name.kind.kind),
        **_origin(request),
    )


def type_page(site: SiteParts, state: ReaderState, request: DocumentRequest, document: Document) -> bytes:
    """Raises UnknownKind for a component that there is not."""
    schema = schemas_of(document).get(request.name)
    if not isinstance(schema, dict):
        raise UnknownKind(f"the document has no type {request.name}", name=request.name)
    name = request.name.rpartition(".")[2]
    fields = _fields(request, document, schema, name)
    return rendered(
        "type.html",
        title=f"{name} {request.origin.group_version}",
        site=site,
        component=request.name,
        has_fields=bool(fields["tree"]),
        uses=list(_uses(document, request.origin.group_version, request.name))[:_USES_MAX],
        **fields,
        **_origin(request),
    )


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
        title=_text_of(key),
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
        unread=_unread(state, key),
        entries=shown_entries(request.entries or (), group_version=key),
        hash=request.origin.hash,
        **_origin(request),
    )


def compare_page(site: SiteParts, state: ReaderState, request: DocumentRequest, document: Document) -> bytes:
    """Raises UnknownKind."""
    other = request.other
    beside_it = None if other is None else state.document(other.hash)
    if other is None or beside_it is None:
        raise UnknownKind("no second version to compare with", name=request.name)
    left = kind_called(document, request.origin.group_version, request.name)[1]
    right = kind_called(beside_it, other.group_version, request.name)[1]
    found = compare_kinds(left, right)
    rows = [_compared(each, left, right) for each in found.differences[:_ROWS_MAX]]
    return rendered(
        "compare.html",
        root=root_from(request.below),
        title=f"{left.kind.kind}: {version_text(left.kind)} and {version_text(right.kind)}",
        site=site,
        kind=left.kind.kind,
        left={"name": version_text(left.kind), "key": left.group_version},
        right={"name": version_text(right.kind), "key": right.group_version},
        rows=rows,
        left_off=len(found.differences) - len(rows),
        documentation=found.documentation,
    )


def _fields(request: DocumentRequest, document: Document, schema: Any, name: str) -> dict[str, Any]:
    tree = tree_of(document, FieldPlace((), schema, False))
    types = f"{root_from(request.below)}type/{quote(request.origin.group_version)}/"
    first, rest = beginning(tree.description, is_whole=True)
    return {
        "name": name,
        "description": Markup(prose(first) + prose(rest)),  # noqa: S704  # escaped there
        "tree": Markup(tree_html(tree, types=types)),  # noqa: S704  # escaped there
        "is_cut": tree.size > MOST_FIELDS,
        "most": MOST_FIELDS,
    }


def _origin(request: DocumentRequest) -> dict[str, Any]:
    origin = request.origin
    return {
        "root": root_from(request.below),
        "key": origin.group_version,
        "version_text": _text_of(origin.group_version),
        "owner": origin.owner,
        "provenance": PROVENANCES[origin.provenance],
    }


def _text_of(key: GroupVersion) -> str:
    parts = split(key)
    return key if parts is None else api_version(*parts)


def schema_file(kind: GroupVersionKind) -> str:
    """Below ``/schemas``."""
    return f"{kind.group or 'core'}/{kind.kind.lower()}_{kind.version}.json"


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
            differing = beside(state.index.graph, own.entry, root.entry)
            named = {"name": version_text(root.name.kind), "key": root.name.group_version}
            made.append({**named, "added": differing.added, "dropped": differing.dropped})
    return made


def _unread(state: ReaderState, key: GroupVersion) -> list[GroupVersion]:
    """Of the same group, other group-versions that are published and not in the index."""
    group = (split(key) or ("",))[0]
    absent = state.published.keys() - state.index.documents.keys() - {key}
    return sorted(each for each in absent if (split(each) or ("",))[0] == group)


def _operations(document: Document, kind: GroupVersionKind) -> list[tuple[str, list[KindOperation]]]:
    """By path."""
    found = islice(operations_of(document, *astuple(kind)), _OPERATIONS_MAX)
    return [(path, list(operations)) for path, operations in groupby(found, key=lambda each: each.path)]


def _scope(operations: list[tuple[str, list[KindOperation]]]) -> str:
    if not operations:
        return "Not a resource"
    return "Namespaced" if any("/{namespace}/" in path for path, _ in operations) else "Cluster-scoped"


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


def _compared(difference: KindDifference, left: KindSchema, right: KindSchema) -> dict[str, str]:
    return {
        "path": difference.path,
        "id": difference.path.replace("[]", "").replace("{}", ""),
        "left": _shown(left, difference.path),
        "right": _shown(right, difference.path),
        "says": difference.says,
    }


def _shown(kind: KindSchema, path: str) -> str:
    """A field's type with its marks; nothing where the kind has no such field."""
    try:
        place = find(kind.document, kind.schema, parse(path.replace("{}", "")))
    except SchemasError:
        return ""
    field: Field = tree_of(kind.document, place, depth=0)
    return f"{field.type}{marks_text(field)}"
