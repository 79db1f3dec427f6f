"""What calls of a package return can be imported from its package, and an editor shows how to call it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

PACKAGES = ("specmux_cache", "specmux_tools", "specmux_converters")
INNER = {"Validator", "DocumentSet"}
"""Classes whose methods alone are for callers: what they hold are a validator's own parts."""


def imported(module: ModuleType) -> dict[str, tuple[str, str]]:
    """Names from our packages, those for type checkers too."""
    return {
        each.asname or each.name: (node.module, each.name)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("specmux")
        for each in node.names
        if node.module
    }


def classes_in(annotation: str, module: ModuleType) -> Iterator[type]:
    names = imported(module)
    for word in re.findall(r"[A-Za-z_]\w+", annotation):
        where, name = names.get(word, (module.__name__, word))
        value = getattr(importlib.import_module(where), name, None)
        if inspect.isclass(value) and value.__module__.startswith("specmux"):
            yield value


def returned(function: Any, module: ModuleType) -> Iterator[type]:
    yield from classes_in(str(function.__annotations__.get("return", "")), module)


def given_by(value: Any) -> Iterator[type]:
    """The classes of results, and of the fields of those."""
    if inspect.isfunction(value):
        yield from returned(value, sys.modules[value.__module__])
        return
    for base in value.__mro__:
        if not base.__module__.startswith("specmux"):
            continue
        module = sys.modules[base.__module__]
        for name, found in vars(base).items():
            function = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
            if not name.startswith("_") and inspect.isfunction(function):
                yield from returned(function, module)
        for name, annotation in vars(base).get("__annotations__", {}).items():
            if not name.startswith("_") and value.__name__ not in INNER:
                yield from classes_in(str(annotation), module)


@pytest.mark.parametrize("name", PACKAGES)
def test_everything_that_calls_return_is_exported(name: str) -> None:
    package = importlib.import_module(name)
    waiting = [getattr(package, each) for each in package.__all__]
    seen: set[Any] = set()
    missing: set[str] = set()
    while waiting:
        value = waiting.pop()
        if value in seen or not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        seen.add(value)
        for found in given_by(value):
            home = importlib.import_module(found.__module__.partition(".")[0])
            is_public = found.__name__ in home.__all__ and getattr(home, found.__name__) is found
            if not is_public and value.__name__ not in INNER:
                missing.add(f"{found.__module__}.{found.__name__} of {value.__name__}")
            if value.__name__ not in INNER:
                waiting.append(found)
    assert len(seen) > 10
    assert missing == set()


@pytest.mark.parametrize("name", PACKAGES)
def test_signature_of_every_class_names_its_arguments(name: str) -> None:
    package = importlib.import_module(name)
    for each in package.__all__:
        value = getattr(package, each)
        if inspect.isclass(value) and not issubclass(value, Exception) and vars(value).get("__form__"):
            parameters = inspect.signature(value).parameters
            assert parameters and not {"args", "kwargs"} & parameters.keys(), each
