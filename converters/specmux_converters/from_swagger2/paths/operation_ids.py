"""Ids of operations, which both standards require to be unique, and real documents repeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from specmux_converters.errors import cut
from specmux_converters.from_swagger2.paths.operations import METHODS
from specmux_converters.from_swagger2.reading.encoding import encode
from specmux_converters.from_swagger2.reading.trace import OutputBudget, Trace
from specmux_converters.outlines import DocumentPart


def with_unique_ids(
    parts: dict[str, DocumentPart], nodes: Mapping[str, tuple[str, Any]], budget: OutputBudget
) -> dict[str, DocumentPart]:
    """The parts of one document, by path: of equal ids the first by path and method remains. ``nodes``: the
    keys of the paths in the input, and their values."""
    ids = [found for path in parts for _, found in _ids(nodes[path][1], parts[path])]
    if len(set(ids)) == len(ids):
        return parts
    result = {**parts}
    taken: set[str] = set()
    for path in sorted(parts):
        repeated = []
        for method, found in sorted(_ids(nodes[path][1], parts[path])):
            if found in taken:
                repeated.append((method, found))
            taken.add(found)
        if repeated:
            result[path] = _without_ids(parts[path], repeated, *nodes[path], budget)
    return result


def _ids(node: Any, part: DocumentPart) -> list[tuple[str, str]]:
    """Methods and ids. Those that an item gets by reference are only in its part."""
    if not node:
        return []
    item = part.value() if "$ref" in node else node
    return [
        (method, operation["operationId"])
        for method, operation in item.items()
        if method in METHODS and operation and operation.get("operationId") is not None
    ]


def _without_ids(
    part: DocumentPart, repeated: list[tuple[str, str]], key: str, node: Any, budget: OutputBudget
) -> DocumentPart:
    trace = Trace.begin(["paths", key], budget)
    item = orjson.loads(part.json)  # the parsed value would stay in memory beside it
    for method, found in repeated:
        del item[method]["operationId"]
        place = (method, "operationId") if method in node else ("$ref",)
        trace.lose("operationId", f"{cut(found)} is another operation's; left out", *place)
    return DocumentPart(encode(item, *trace.path), part.refs, (*part.losses, *trace.losses))
