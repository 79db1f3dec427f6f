"""The page of two versions of a kind, side by side."""

from __future__ import annotations

from typing import Any, Final

from specmux_aggregator.reader.assets import root_from
from specmux_aggregator.reader.requests import DocumentRequest, SiteParts
from specmux_converters.document import Document
from specmux_tools.differences.kind_comparison import KindDifference, compare_kinds
from specmux_tools.errors import SchemasError, UnknownKind
from specmux_tools.explanation.field_path import parse
from specmux_tools.explanation.tree import Field, find, tree_of
from specmux_tools.kinds import KindSchema
from specmux_tools.reader.questions import kind_called
from specmux_tools.reader.state import ReaderState
from specmux_tools.web_ui.page_frame import rendered
from specmux_tools.web_ui.pages import version_text
from specmux_tools.web_ui.tree import marks_text

_ROWS_MAX: Final = 500


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


def _compared(difference: KindDifference, left: KindSchema, right: KindSchema) -> dict[str, Any]:
    return {
        "path": difference.path,
        "id": difference.path.replace("[]", "").replace("{}", ""),
        "left": _shown(left, difference.path),
        "right": _shown(right, difference.path),
        "says": difference.says,
    }


def _shown(kind: KindSchema, path: str) -> tuple[str, str] | None:
    """A field's type, and its marks; None where the kind has no such field."""
    try:
        place = find(kind.document, kind.schema, parse(path.replace("{}", "")))
    except SchemasError:
        return None
    field: Field = tree_of(kind.document, place, depth=0)
    return field.type, marks_text(field)
