"""The media types of a kind's operations, grouped where they are equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

from specmux_converters.document import Document
from specmux_converters.operations import operations_of
from specmux_converters.resources import GroupVersionKind


def media_types_json(document: Document, kind: GroupVersionKind) -> list[dict[str, Any]]:
    """``verbs``, ``consumes``, ``produces``; operations of subresources are listed if they differ."""
    verbs: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, None]] = {}
    for each in operations_of(document, *astuple(kind)):
        if each.consumes or each.produces:
            verbs.setdefault((each.consumes, each.produces), {})[each.verb] = None
    return [
        {"verbs": list(names), "consumes": list(consumes), "produces": list(produces)}
        for (consumes, produces), names in verbs.items()
    ]


def media_type_lines(document: Document, kind: GroupVersionKind) -> Iterator[str]:
    for each in media_types_json(document, kind):
        parts = [("takes", each["consumes"]), ("gives", each["produces"])]
        told = "; ".join(f"{verb} {', '.join(names)}" for verb, names in parts if names)
        yield f"{', '.join(each['verbs'])}: {told}"
