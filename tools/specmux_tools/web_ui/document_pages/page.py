"""A page that is made of documents and the index, and what such pages have in common."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from specmux_aggregator.reader.assets import root_from
from specmux_aggregator.reader.requests import DocumentRequest
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, api_version, split
from specmux_converters.resources import GroupVersionKind
from specmux_tools.explanation.kind_names import names_in
from specmux_tools.explanation.tree import MOST_FIELDS, FieldPlace, tree_of
from specmux_tools.reader.state import ReaderState
from specmux_tools.web_ui.markdown_links import beginning, prose
from specmux_tools.web_ui.pages import PROVENANCES
from specmux_tools.web_ui.tree import tree_html


def fields_of(request: DocumentRequest, document: Document, schema: Any, name: str) -> dict[str, Any]:
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


def origin_of(request: DocumentRequest) -> dict[str, Any]:
    origin = request.origin
    return {
        "root": root_from(request.below),
        "key": origin.group_version,
        "version_text": text_of(origin.group_version),
        "owner": origin.owner,
        "provenance": PROVENANCES[origin.provenance],
    }


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
    """Of the same group, other group-versions that are published and not in the index."""
    group = (split(key) or ("",))[0]
    absent = state.published.keys() - state.index.documents.keys() - {key}
    return sorted(each for each in absent if (split(each) or ("",))[0] == group)
