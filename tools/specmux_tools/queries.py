"""Explain, search, validate and diff over parsed documents: the commands' functions for programs.

Documents are mappings from group-versions (``apps/v1``, or ``apis/apps/v1`` as in ``/openapi/v3``) to parsed
OpenAPI v3 documents, as ``SchemaCache.spec`` returns them. They are never modified. Anything else raises
SchemasError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, named_group_version
from specmux_tools.errors import InvalidPath, SchemasError, UnknownKind
from specmux_tools.kinds import DocumentSet

if TYPE_CHECKING:  # each function imports what it needs: most programs call one of them
    from specmux_tools.differences.changes import Change
    from specmux_tools.differences.served import ServedSide
    from specmux_tools.search_index.query import SearchResult
    from specmux_tools.validation.decoding.streams import StreamPart
    from specmux_tools.validation.report import ValidationReport
    from specmux_tools.validation.validator import Validator


Documents: TypeAlias = Mapping[str, Mapping[str, Any]]


def explain(documents: Documents, subject: str, *, api_version: str = "", recursive: bool = False) -> str:
    """The text of a kind or a field: ``deploy.spec.replicas``, ``Pod.spec.containers[].image``.

    ``api_version`` ("apps/v1") chooses among kinds of one name. Raises UnknownKind and UnknownField, with
    similar names, and InvalidPath.
    """
    from specmux_tools.explanation.field_path import parse
    from specmux_tools.explanation.kind_names import find_kind, kind_names
    from specmux_tools.explanation.text import text
    from specmux_tools.explanation.tree import find

    found = _document_set(documents)
    asked = find_kind(kind_names(found.documents), parse(subject), version=api_version)
    schema = found.find(asked.chosen.kind)
    if schema is None:
        raise UnknownKind(f"no document describes {asked.chosen.kind.kind}", name=asked.chosen.kind.kind)
    place = find(schema.document, schema.schema, asked.steps)
    return text(schema.document, asked.chosen.kind, place.names, recursive=recursive)


def search(documents: Documents, words: str, *, group: str | None = None, limit: int = 20) -> SearchResult:
    """The best ``limit`` kinds and fields for ``words``; ``group`` "" is the core group. Raises InvalidPath.

    Builds an index for each call; for many queries keep a ``FieldIndex`` (``specmux_tools.search_index``).
    """
    from specmux_tools.search_index.index import FieldIndex
    from specmux_tools.search_index.query import search as search_index

    index = FieldIndex()
    for key, document in _document_set(documents).documents.items():
        index.put(key, document, hash="")
    return search_index(index, words, limit=limit, group=group)


def validate(
    documents: Documents, manifests: str | bytes, *, release: str | None = None
) -> list[ValidationReport]:
    """Validates every object of a YAML or JSON text, including the items of a List.

    CustomResourceDefinitions in the text define the kinds beside them. ``release`` of Kubernetes ("1.34")
    selects the rules; None is the newest. An object is accepted if its report ``is_valid`` and
    ``is_complete``. Raises InvalidPath for a text without objects, since nothing was checked.
    """
    from specmux_tools.validation.decoding.streams import parts_of

    data = manifests.encode("utf-8", "surrogatepass") if isinstance(manifests, str) else manifests
    parts = list(parts_of(data))
    if not parts:
        raise InvalidPath("no object in the manifests")
    known = _document_set(documents).documents
    validator = validator_beside(parts, lambda own: DocumentSet(known, own=own), release=release)
    return [
        report.move_lines(part.line)
        for part in parts
        for report in validator.validate_all(part.data, f"application/{part.format}")
    ]


def validator_beside(
    parts: Iterable[StreamPart],
    documents_of: Callable[[Mapping[GroupVersion, Document]], DocumentSet],
    *,
    release: str | None = None,
) -> Validator:
    """A validator for manifests with the definitions among them. ``documents_of`` joins the documents of
    these definitions with all others that are needed.
    """
    from specmux_tools.validation.decoding.manifests import definitions_in, preserving_kinds
    from specmux_tools.validation.validator import Validator

    definitions = definitions_in(parts)
    own: Mapping[GroupVersion, Document] = {}
    if definitions:
        # takes as long to import as everything else here
        from specmux_converters.crd import AS_DEFINED, build

        own = build(definitions, templates=AS_DEFINED).documents
    return Validator(
        documents_of(own),
        preserving=preserving_kinds(definitions),
        release=release,
        definitions=definitions,
    )


def diff(old: Documents, new: Documents) -> tuple[Change, ...]:
    """The changes from ``old`` to ``new``, and whom they break (``Change.severity``, ``Change.impacts``)."""
    from specmux_tools.differences import compare
    from specmux_tools.differences.reports import report_of

    return report_of(compare(_side(old), _side(new)), old="old", new="new").changes


def _side(documents: Documents) -> ServedSide:
    from specmux_tools.differences import ServedSide, add_document

    side = ServedSide()
    for document in _document_set(documents).documents.values():
        add_document(side, document)
    return side


def _document_set(documents: Documents) -> DocumentSet:
    """Raises SchemasError for what is not OpenAPI v3: it would be read as an empty document, without
    changes."""
    for name, document in documents.items():
        if not str(document.get("openapi", "")).startswith("3."):
            raise SchemasError(f"{name}: not an OpenAPI v3 document; specmux_converters.convert makes one")
    return DocumentSet({named_group_version(name): dict(document) for name, document in documents.items()})
