"""Change one thing in a room of the sources, and run the tests of that room: do they notice?

    python tests/stress/stress_mutants.py [--room changes] [--mutants 60] [--seed 1] [--seconds 3600]

A mutant has one comparison, condition, sum, flag, number, result or call that is another than before, or
none. They are drawn by the seed from all that the room allows. Each runs in a process of its own, forked
after the libraries are loaded, with the test file of its module first. Prints the survivors; exits 1 where
fewer than 85 in 100 are noticed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.abc
import importlib.util
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ("aggregator", "cache", "converters", "tools", "tests")
WANTED: Final = 0.85


@dataclass(frozen=True)
class Room:
    folder: str
    tests: tuple[str, ...]


ROOMS: Final = {
    "aggregation": Room(
        "aggregator/specmux_aggregator/aggregation",
        ("tests/aggregator/aggregation", "tests/model/test_service.py"),
    ),
    "endpoints": Room(
        "aggregator/specmux_aggregator/endpoints",
        ("tests/aggregator/endpoints", "tests/aggregator/server", "tests/model/test_service.py"),
    ),
    "changes": Room(
        "aggregator/specmux_aggregator/changes",
        ("tests/aggregator/changes", "tests/model/test_streams.py", "tests/model/test_service.py"),
    ),
    "store": Room("cache/specmux_cache/store", ("tests/cache/store", "tests/model/test_store.py")),
}

SWAPPED: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


@dataclass(frozen=True)
class Site:
    """A place in a tree that may be another. ``key``: the field of the parent, and the place in its list."""

    parent: ast.AST
    key: tuple[str, int | None]
    new: ast.AST
    line: int
    words: str

    def apply(self) -> None:
        name, place = self.key
        if place is None:
            setattr(self.parent, name, self.new)
        else:
            getattr(self.parent, name)[place] = self.new


def sites(tree: ast.Module) -> Iterator[Site]:
    """All places inside functions, but for annotations, defaults, texts and what is logged."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for place, statement in enumerate(node.body):
                yield from _below(node, ("body", place), statement)


def _below(parent: ast.AST, key: tuple[str, int | None], node: ast.AST) -> Iterator[Site]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.JoinedStr | ast.Raise):
        return  # functions come by themselves
    if isinstance(node, ast.Expr) and (_is_logged(node.value) or isinstance(node.value, ast.Constant)):
        return
    line = getattr(node, "lineno", 0)
    for new in _others(node):
        yield Site(parent, key, new, line, f"{_text(node)} -> {_text(new)}")
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params", "ctx"):
            continue
        if isinstance(value, ast.operator | ast.boolop) and type(value) in SWAPPED:
            new = SWAPPED[type(value)]()
            words = f"{type(value).__name__} -> {type(new).__name__} in {_text(node)}"
            yield Site(node, (name, None), new, line, words)
        elif isinstance(value, ast.AST):
            yield from _below(node, (name, None), value)
        elif isinstance(value, list):
            for place, each in enumerate(value):
                if isinstance(each, ast.cmpop) and type(each) in SWAPPED:
                    new = SWAPPED[type(each)]()
                    words = f"{type(each).__name__} -> {type(new).__name__} in {_text(node)}"
                    yield Site(node, (name, place), new, line, words)
                elif isinstance(each, ast.AST):
                    yield from _below(node, (name, place), each)


def _others(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute()]) | ast.AugAssign() | ast.Delete():
            yield ast.Pass()
        case ast.Continue():
            yield ast.Break()
        case ast.IfExp(body=body, orelse=orelse):
            yield body
            yield orelse


def _is_logged(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and _text(value.func).startswith("logger.")


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:100]


@dataclass(frozen=True)
class Mutant:
    path: Path
    number: int
    line: int
    words: str

    @property
    def module(self) -> str:
        return ".".join(self.path.relative_to(ROOT).with_suffix("").parts[1:])

    def code(self) -> CodeType:
        tree = ast.parse(self.path.read_text())
        list(sites(tree))[self.number].apply()
        return compile(ast.fix_missing_locations(tree), str(self.path), "exec")


def mutants(room: Room) -> list[Mutant]:
    return [
        Mutant(path, number, site.line, site.words)
        for path in sorted((ROOT / room.folder).glob("*.py"))
        for number, site in enumerate(sites(ast.parse(path.read_text())))
    ]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the module of a mutant from its own code."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name != self._mutant.module:
            return None
        return importlib.util.spec_from_file_location(name, self._mutant.path, loader=self)

    def exec_module(self, module: Any) -> None:
        exec(self._mutant.code(), module.__dict__)


def is_noticed(mutant: Mutant | None, room: Room, *, seconds: float) -> bool:
    """Whether a test fails, or takes more than ``seconds`` of processor time."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (round(seconds), round(seconds) + 1))
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(1, 2)
        code: int = 1
        try:
            code = _run(mutant, room)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # its workers
    return status != 0


def _run(mutant: Mutant | None, room: Room) -> int:
    import pytest

    tests = list(room.tests)
    if mutant is not None:
        sys.meta_path.insert(0, _Finder(mutant))
        own = [*(ROOT / room.tests[0]).glob(f"test_{mutant.path.stem}.py")]
        tests = [*map(str, own), *tests]
    flags = ["-x", "-q", "-p", "no:cacheprovider", "--timeout", "300", "-W", "ignore:Module already imported"]
    return int(pytest.main([*flags, *tests]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--room", choices=sorted(ROOMS))
    parser.add_argument("--mutants", type=int, default=60, help="of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="for each room, at most")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / each) for each in SOURCES]
    for each in ("aiohttp", "hypothesis.stateful", "orjson", "pytest", "cbor2", "yaml", "zstandard"):
        if importlib.util.find_spec(each.partition(".")[0]) is not None:
            importlib.import_module(each)  # once, for all
    failed = False
    for name in [options.room] if options.room else sorted(ROOMS):
        room, until = ROOMS[name], time.monotonic() + options.seconds
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        if is_noticed(None, room, seconds=3600.0):
            sys.exit(f"{name}: its tests fail without any mutant")
        usual = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        found = mutants(room)
        chosen = random.Random(options.seed).sample(found, min(options.mutants, len(found)))
        tried = noticed = 0
        for mutant in chosen:
            if time.monotonic() > until:
                break
            tried += 1
            if is_noticed(mutant, room, seconds=10.0 + 3.0 * usual):
                noticed += 1
            else:
                where = f"{mutant.path.relative_to(ROOT)}:{mutant.line}"
                print(f"survived: {where} {mutant.words}", flush=True)
        print(
            f"{name}: {noticed} of {tried} noticed, of {len(found)} possible, {usual:.0f} s each", flush=True
        )
        failed |= noticed < WANTED * tried
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
