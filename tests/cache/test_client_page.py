"""docs/client.md says what there is."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path

import pytest

from specmux_cache import AsyncSchemaCache
from specmux_tools.commands.cache import cache

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
CALLS = [
    name
    for name, member in inspect.getmembers(AsyncSchemaCache, inspect.isfunction)
    if not name.startswith("_")
]


@pytest.mark.parametrize("name", CALLS)
def test_page_when_a_call_exists_names_it(name):
    assert f"`{name}(" in PAGE


@pytest.mark.parametrize("name", sorted(cache.commands))
def test_page_when_a_command_exists_names_it(name):
    command_line = PAGE[PAGE.index("## Command line") : PAGE.index("## Limits")]
    assert f"`{name}" in command_line


def test_page_when_a_conformance_test_means_nothing_here_says_why(monkeypatch):
    folder = ROOT / "tests" / "conformance" / "cache_tests"
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    spec = importlib.util.spec_from_file_location("cache_tests_run", folder / "run.py")
    assert spec is not None and spec.loader is not None
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    assert [test for test in run.EXCEPTIONS if f"`{test}`" not in PAGE] == []
