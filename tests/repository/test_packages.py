"""Promises about the packages themselves: what they export, and that every module stands alone."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import grimp
import pytest

from deadline import DEADLINE
from repository.api_page import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
PACKAGES = ("specmux_aggregator", "specmux_converters", "specmux_cache", "specmux_tools")


def modules() -> list[str]:
    return [
        name
        for package in PACKAGES
        for _, name, _ in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_exports_exist_and_are_few(package: str) -> None:
    module = importlib.import_module(package)
    exported = getattr(module, "__all__", [])
    assert len(exported) < 30
    assert sorted(exported) == sorted(set(exported))
    assert all(hasattr(module, name) for name in exported)


@pytest.mark.parametrize(
    "is_reversed",
    [pytest.param(False, id="first to last"), pytest.param(True, id="last to first", marks=pytest.mark.long)],
)
def test_every_module_imports_without_a_warning(is_reversed: bool) -> None:
    """In two orders, and in any: nothing imports in a circle (below), so none needs another to be there
    before. A process for each module would take minutes."""
    script = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\n"
    names = sorted(modules(), reverse=is_reversed)
    command = [sys.executable, "-W", "error", "-c", script, *names]
    result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert result.returncode == 0, result.stderr[-2000:]


def test_converters_and_cache_load_neither_a_server_nor_the_aggregator() -> None:
    script = (
        "import sys, specmux_converters.from_swagger2.conversion, specmux_converters.codecs\n"
        "servers = ('aiohttp', 'asyncio', 'click', 'prometheus_client', 'specmux_aggregator')\n"
        "bad = [m for m in servers if m in sys.modules]\n"
        "sys.exit(' '.join(bad) or 0)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert result.returncode == 0, result.stderr


def test_no_module_imports_itself_through_others() -> None:
    """Import cycles, those of annotations included."""
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False, cache_dir=None)
    assert {name: chain for name in graph.modules if (chain := cycle(graph, name))} == {}


def cycle(graph: Any, name: str) -> tuple[str, ...] | None:
    """A way from a module back to itself; None: there is none."""
    for imported in graph.find_modules_directly_imported_by(name):
        chain = graph.find_shortest_chain(imported, name)
        if chain:
            return (name, *chain)
    return None


def test_public_class_names_stand_for_one_thing() -> None:
    """Across all packages, so that a name says which type is meant."""
    found: dict[str, list[str]] = {}
    for name in modules():
        for each, value in vars(importlib.import_module(name)).items():
            if inspect.isclass(value) and value.__module__ == name and not each.startswith("_"):
                found.setdefault(each, []).append(name)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
    participles = {
        name
        for name in found
        if re.fullmatch(r"[A-Z][a-z]*ed|Found|Held|Seen|Told|Kept|Known|Built|Shown", name)
    }
    assert participles <= {"Feed"}


def test_guarded_imports_say_why_and_loggers_have_one_name() -> None:
    """One rule for all packages: what annotations need is imported like everything else, unless a comment at
    the guard says what that would cost. (Relative imports are ruff's to find.)"""
    bare, misnamed = [], []
    for name in modules():
        for line in inspect.getsource(importlib.import_module(name)).splitlines():
            if line.strip() == "if TYPE_CHECKING:":
                bare.append(name)
            if "getLogger(" in line and not line.startswith(("logger = ", "logger: Final = ")):
                misnamed.append(name)
    assert bare == []
    assert misnamed == []


def test_reference_page_names_what_is_exported() -> None:
    assert PAGE.read_text() == page(), "python tests/repository/api_page.py >docs/api.md"
