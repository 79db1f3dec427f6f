"""Rows as JSON values: the output of ``-o json`` and of the service."""

from __future__ import annotations

from typing import Any

from specmux_tools.explanation.field_path import written
from specmux_tools.search_index.query import SchemaHit, SearchResult


def found_json(found: SearchResult) -> dict[str, Any]:
    made = {"total": found.total, "partial": found.is_partial, "rows": [row_json(row) for row in found.rows]}
    return {**made, "didYouMean": found.did_you_mean} if found.did_you_mean else made


def row_json(row: SchemaHit) -> dict[str, Any]:
    kind = row.kind.kind
    made = {"group": kind.group, "version": kind.version, "kind": kind.kind, "path": written(row.path)}
    more = {"type": row.type, "description": row.summary, "alsoIn": list(row.also_in)}
    return {**made, "document": row.kind.group_version, **more, "alsoInCount": row.also_in_count}
