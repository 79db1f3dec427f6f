"""KEP-2896, for support: warnings and errors about documents carry the words openapi and spec."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import specmux_aggregator

ROOMS = (
    "aggregation/document_checks.py",
    "aggregation/publisher.py",
    "aggregation/refresher.py",
    "changes/history.py",
    "documents/repository.py",
    "kubernetes/shared_crd_parts.py",
)
BUG = "backend %s: check failed with a bug"


def warnings_in(source: str) -> list[str]:
    return [
        call.args[0].value
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("warning", "error", "exception")
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_warnings_about_documents_are_found_by_their_words(room: str) -> None:
    told = warnings_in((Path(specmux_aggregator.__file__).parent / room).read_text())
    assert told
    assert [text for text in told if "OpenAPI spec" not in text and text != BUG] == []
