"""Folders and functions of the product stay small enough to be read at a glance."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PACKAGES = ("aggregator", "converters", "cache", "schemas")
MOST = 20
FLAT = {"aggregator/specmux_aggregator/commands": 27, "aggregator/specmux_aggregator/server": 27}
"""One module a command, and one subject: rooms that need no floors."""
PARAMETERS = 8
COMPOSITION = 40
"""Lines of the composition root's constructor."""


def test_no_folder_has_more_modules_than_its_bound() -> None:
    modules = Counter(
        module.parent.relative_to(TOP).as_posix()
        for package in PACKAGES
        for module in TOP.joinpath(package).rglob("*.py")
    )
    assert len(modules) > 50
    assert {folder: n for folder, n in modules.items() if n > FLAT.get(folder, MOST)} == {}


def test_no_function_has_more_parameters_than_a_reader_keeps_in_mind() -> None:
    modules = [module for package in PACKAGES for module in TOP.joinpath(package).rglob("*.py")]
    found = {
        f"{module}:{each.lineno}": _parameters(each) for module in modules for each in _functions(module)
    }
    assert len(found) > 5000
    assert {place: n for place, n in found.items() if n > PARAMETERS} == {}


def test_composition_root_is_short() -> None:
    functions = _functions(TOP / "aggregator/specmux_aggregator/app.py")
    root = next(each for each in functions if each.name == "__init__")
    assert (root.end_lineno or 0) - root.lineno + 1 <= COMPOSITION


def _functions(module: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for each in ast.walk(ast.parse(module.read_bytes())):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield each


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    named = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    open_ends = [each for each in (given.vararg, given.kwarg) if each is not None]
    return len([name for name in named if name not in ("self", "cls")]) + len(open_ends)
