"""Change one thing in a room of the sources, and run the tests of that room: do they notice?

    python tests/stress/stress_mutants.py [--room changes] [--mutants 60] [--seed 1] [--seconds 3600]

A mutant has one comparison, condition, sum, flag, number, result or call that is another than before, or
none. They are drawn by the seed from all that the room allows. Prints the survivors; exits 1 where fewer than
85 in 100 are noticed.
"""

# Theory of operation
#
# The tests of a room run once under a tracer, which notes for each test how long it took and which lines of
# the room it reached. Only those that reached a mutant's line can notice it; they run from the quickest to
# the slowest, up to the first that fails.
#
# This process collects all tests of the room, and with them imports everything that they import. Each mutant
# gets a process forked from it, in which the functions of its module get the code of the mutant: whoever has
# imported one by name has it too. A module that is imported later comes from the mutant's source.

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import importlib.abc
import importlib.util
import io
import os
import pickle
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ("aggregator", "cache", "converters", "tools", "tests")
WANTED: Final = 0.85
FLAGS: Final = ("-q", "-p", "no:cacheprovider", "-W", "ignore:Module already imported")
NOT_PUT_IN: Final = 77
"""What the process of a mutant exits with that changed no function."""


@dataclass(frozen=True)
class Room:
    folder: str
    tests: tuple[str, ...]

    @property
    def modules(self) -> list[Path]:
        return sorted((ROOT / self.folder).glob("*.py"))


ROOMS: Final = {
    "aggregation": Room(
        "aggregator/specmux_aggregator/aggregation",
        ("tests/aggregator/aggregation", "tests/model/test_service.py"),
    ),
    "endpoints": Room(
        "aggregator/specmux_aggregator/endpoints",
        (
            "tests/aggregator/endpoints",
            "tests/aggregator/server",
            "tests/integration/test_openapi_v2.py",
            "tests/integration/test_discovery.py",
            "tests/model/test_service.py",
        ),
    ),
    "changes": Room(
        "aggregator/specmux_aggregator/changes",
        (
            "tests/aggregator/changes",
            "tests/aggregator/metrics/test_series.py",
            "tests/model/test_streams.py",
            "tests/model/test_service.py",
        ),
    ),
    "store": Room(
        "cache/specmux_cache/store",
        ("tests/cache/store", "tests/cache/test_entries.py", "tests/model/test_store.py"),
    ),
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
    """A place in a tree that may be another. ``key``: the field of the parent, and the place in its list.
    ``lines``: from the first of its statement to its last."""

    parent: ast.AST
    key: tuple[str, int | None]
    new: ast.AST
    lines: range
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
                yield from _below(node, ("body", place), statement, statement.lineno)


def _below(parent: ast.AST, key: tuple[str, int | None], node: ast.AST, first: int) -> Iterator[Site]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.JoinedStr | ast.Raise):
        return  # functions come by themselves
    if isinstance(node, ast.Expr) and (_is_logged(node.value) or isinstance(node.value, ast.Constant)):
        return
    if isinstance(node, ast.stmt):
        first = node.lineno
    lines = range(first, (getattr(node, "end_lineno", None) or first) + 1)
    for new in _others(node):
        yield Site(parent, key, new, lines, f"{_text(node)} -> {_text(new)}")
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params", "ctx"):
            continue
        if isinstance(value, ast.operator | ast.boolop) and type(value) in SWAPPED:
            new = SWAPPED[type(value)]()
            words = f"{type(value).__name__} -> {type(new).__name__} in {_text(node)}"
            yield Site(node, (name, None), new, lines, words)
        elif isinstance(value, ast.AST):
            yield from _below(node, (name, None), value, first)
        elif isinstance(value, list):
            for place, each in enumerate(value):
                if isinstance(each, ast.cmpop) and type(each) in SWAPPED:
                    new = SWAPPED[type(each)]()
                    words = f"{type(each).__name__} -> {type(new).__name__} in {_text(node)}"
                    yield Site(node, (name, place), new, lines, words)
                elif isinstance(each, ast.AST):
                    yield from _below(node, (name, place), each, first)


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
    lines: range
    words: str

    @property
    def module(self) -> str:
        return ".".join(self.path.relative_to(ROOT).with_suffix("").parts[1:])

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.lines[0]}"

    def code(self) -> CodeType:
        tree = ast.parse(self.path.read_text())
        list(sites(tree))[self.number].apply()
        return compile(ast.fix_missing_locations(tree), str(self.path), "exec")


def mutants(room: Room) -> list[Mutant]:
    return [
        Mutant(path, number, site.lines, site.words)
        for path in room.modules
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


def put_in(mutant: Mutant) -> None:
    """Give the functions of its module the mutant's code, now and when it is imported again.

    Raises LookupError if the module is imported and none of its functions changed.
    """
    sys.meta_path.insert(0, _Finder(mutant))
    codes: dict[tuple[str, int], CodeType] = {}
    left = [mutant.code()]
    while left:
        code = left.pop()
        codes[code.co_qualname, code.co_firstlineno] = code
        left += [each for each in code.co_consts if isinstance(each, CodeType)]
    changed = False
    gc.unfreeze()  # conftest freezes what collection made, and get_objects leaves that out
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename == str(mutant.path):
            new = codes.get((each.__code__.co_qualname, each.__code__.co_firstlineno), each.__code__)
            if new.co_freevars == each.__code__.co_freevars:
                changed |= new != each.__code__
                each.__code__ = new
    if not changed and mutant.module in sys.modules:
        raise LookupError(mutant.place)


@dataclass(frozen=True)
class Reach:
    """What a test reached: (file, line) within the room; and its processor seconds."""

    test: str
    seconds: float
    lines: frozenset[tuple[str, int]]


class Tracer:
    """A plugin of pytest that notes what each test reaches."""

    def __init__(self, room: Room) -> None:
        self._files = set(map(str, room.modules))
        self._lines: set[tuple[str, int]] = set()
        self.found: list[Reach] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._lines.clear()
        started = time.process_time()
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            seconds = time.process_time() - started
            self.found.append(Reach(item.nodeid, seconds, frozenset(self._lines)))

    def _enter(self, frame: FrameType, event: str, _: object) -> Any:
        return self._note if frame.f_code.co_filename in self._files else None

    def _note(self, frame: FrameType, event: str, _: object) -> Any:
        self._lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._note


def reaches_of(room: Room) -> list[Reach]:
    """Of all tests, the quickest first. Exits if one fails."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        tracer = Tracer(room)
        code = _run(list(room.tests), tracer)
        with os.fdopen(writing, "wb") as file:
            pickle.dump((code, tracer.found), file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        code, found = pickle.load(file)
    _end(child)
    if code:
        sys.exit(f"{room.folder}: its tests fail without any mutant")
    return sorted(found, key=lambda each: each.seconds)


def is_noticed(mutant: Mutant, reaches: list[Reach]) -> bool:
    """Whether a test fails, or takes several times as long as without the mutant."""
    wanted = {(str(mutant.path), line) for line in mutant.lines}
    chosen = [each for each in reaches if wanted & each.lines]
    seconds = round(10 + 3 * sum(each.seconds for each in chosen))
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        code: int = 1
        try:
            put_in(mutant)
            code = _run([each.test for each in chosen]) if chosen else 0
        except LookupError:
            code = NOT_PUT_IN
        finally:
            os._exit(code)
    status = _end(child)
    if os.waitstatus_to_exitcode(status) == NOT_PUT_IN:
        sys.exit(f"{mutant.place} {mutant.words}: no function of the module changed")
    return status != 0


def _end(child: int) -> int:
    """The status of a child that ends, and the end of its own children."""
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return status


def _run(tests: list[str], *plugins: object) -> int:
    """Run tests in this process, a child; it ends with a code of pytest."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    return int(pytest.main([*FLAGS, "-x", "--timeout", "300", *tests], plugins=list(plugins)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--room", choices=sorted(ROOMS))
    parser.add_argument("--mutants", type=int, default=60, help="of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="for each room, at most")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / each) for each in SOURCES]
    failed = False
    for name in [options.room] if options.room else sorted(ROOMS):
        room, until = ROOMS[name], time.monotonic() + options.seconds
        with contextlib.redirect_stdout(io.StringIO()):
            if pytest.main([*FLAGS, "--collect-only", *room.tests]) != 0:
                sys.exit(f"{name}: its tests cannot be collected")
        reaches = reaches_of(room)
        found = mutants(room)
        chosen = random.Random(options.seed).sample(found, min(options.mutants, len(found)))
        tried = noticed = 0
        for mutant in chosen:
            if time.monotonic() > until:
                break
            tried += 1
            if is_noticed(mutant, reaches):
                noticed += 1
            else:
                print(f"survived: {mutant.place} {mutant.words}", flush=True)
        used = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        print(
            f"{name}: {noticed} of {tried} noticed, of {len(found)} possible, {used:.0f} s so far", flush=True
        )
        failed |= noticed < WANTED * tried
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
