"""Add lines and columns to violations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specmux_tools.validation.decoding.objects import Body
from specmux_tools.validation.decoding.positions import Places, line_and_column
from specmux_tools.validation.media_types import BodyFormat
from specmux_tools.validation.report import Check, Violation


def located(
    violations: Sequence[Violation], body: Body, *, offset: int | None = None
) -> tuple[Violation, ...]:
    """``offset``: byte at which a text stops being JSON. CBOR has no lines."""
    if not violations or body.format is BodyFormat.CBOR:
        return tuple(violations)
    if offset is not None:
        before = body.data[:offset].decode("utf-8", "replace")
        line, column = line_and_column(before, len(before))
        return tuple(replace(violation, line=line, column=column) for violation in violations)
    places = _places(violations, body)
    if places is None:
        return tuple(violations)
    return tuple(_with_place(violation, places, body) for violation in violations)


def _places(violations: Sequence[Violation], body: Body) -> Places | None:
    places = Places((*body.prefix, *violation.path) for violation in violations)
    if body.document is not None:
        places.read_yaml(body.document.marks)
    elif body.format is BodyFormat.JSON and body.value is not None:
        repeats = any(violation.check is Check.DUPLICATE_FIELD for violation in violations)
        places.read_json(body.data.decode("utf-8", "replace"), repeats=repeats)
    else:
        return None
    return places


def _with_place(violation: Violation, places: Places, body: Body) -> Violation:
    if violation.line is not None:
        return violation
    path = (*body.prefix, *violation.path)
    found = places.of(path, occurrence=int(violation.check is Check.DUPLICATE_FIELD))
    return violation if found is None else replace(violation, line=found[0], column=found[1])
