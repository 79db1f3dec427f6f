"""What docstrings, comments and pages name of ours is there: files, modules, and symbols in backticks."""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = tuple(
    ROOT / top / package
    for top, package in (
        ("aggregator", "specmux_aggregator"),
        ("cache", "specmux_cache"),
        ("converters", "specmux_converters"),
        ("tools", "specmux_tools"),
    )
)
PAGES = sorted((ROOT / "docs").glob("*.md"))
FILE = re.compile(r"(?<![\w./-])((?:\w+/)*\w+\.py)\b")
QUOTED = re.compile(r"``([A-Za-z_][\w.]*)(?:\(\))?``")
DOTTED = re.compile(r"(?<![\w./`\"'-])([a-z_]+(?:\.[a-z_]+)*)\.([A-Z][A-Z_]{2,}|[A-Z][a-z]\w+)\b")
"""A module and a constant or a class of it."""
FOREIGN = {
    "CompareKubeAwareVersionStrings": "apimachinery, in Go",
    "PodSpec": "Kubernetes",
    "ToSchemaFromOpenAPI": "kube-openapi, in Go",
    "_v2": "what merging puts behind a name",
    "_v3": "the same",
    "clusterIPs": "Kubernetes",
    "selector_events.py": "asyncio",
}
"""Names that are not ours, or parts of names, and whose they are."""

QUOTED_IN_PAGE = re.compile(r"`([a-z_]+(?:\.[A-Za-z_]\w*)+)`")


@cache
def sources() -> dict[Path, str]:
    return {path: path.read_text() for folder in FOLDERS for path in sorted(folder.rglob("*.py"))}


@cache
def modules() -> dict[str, tuple[Path, ...]]:
    """Files by the last name of their module, and folders by theirs."""
    found: dict[str, list[Path]] = {}
    for path in sources():
        found.setdefault(path.parent.name if path.stem == "__init__" else path.stem, []).append(path)
    return {name: tuple(paths) for name, paths in found.items()}


def prose(text: str) -> Iterator[str]:
    """The docstrings and comments of a source, and what its assertions say."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(told))):
                yield told
            case ast.Assert(msg=ast.Constant(value=str(told))):
                yield told


def said(text: str) -> set[str]:
    """Every identifier of a source outside its prose: names, attributes, and words of its other strings."""
    found: set[str] = set()
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str | bytes)
            and id(node) not in docstrings
        ):
            value = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            found.update(re.findall(r"\w+", value))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            found.add(token.string)
    return found


@cache
def words() -> frozenset[str]:
    return frozenset(keyword.kwlist) | set(dir(builtins)) | set().union(*map(said, sources().values()))


def is_file(name: str, teller: Path) -> bool:
    """A path from the repository or a package on, a file beside who tells of it, or the only one of its
    name."""
    if (ROOT / name).exists() or (teller.parent / name).exists():
        return True
    if "/" in name:
        return any((base / name).exists() for folder in FOLDERS for base in (folder, folder.parent))
    everywhere = list(ROOT.glob(name)) + [path for path in sources() if path.name == name]
    everywhere += list((ROOT / "tests").rglob(name))
    return len(everywhere) == 1


def defines(path: Path, name: str) -> bool:
    """At the top of a module, or as a member of one of its classes."""
    return name in said_at_the_top(path) or (path.stem == "__init__" and name in below(path.parent))


@cache
def said_at_the_top(path: Path) -> frozenset[str]:
    tree = ast.parse(sources()[path])
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    found: set[str] = set()
    for node in (node for body in bodies for node in body):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.Assign():
                found.update(target.id for target in node.targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Import() | ast.ImportFrom():
                found.update(alias.asname or alias.name for alias in node.names)
    return frozenset(found)


@cache
def constants() -> frozenset[str]:
    """Names in capitals that modules of ours define: whatever module is said to have one is ours."""
    found = frozenset().union(*map(said_at_the_top, sources()))
    return frozenset(name for name in found if name.isupper() and "_" in name)


def below(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.py")} | {
        path.name for path in folder.iterdir() if path.is_dir()
    }


def is_symbol(parts: list[str]) -> bool:
    """Modules of ours, one below the other, and perhaps what the last one defines."""
    return any(resolves(first, parts[1:]) for first in modules().get(parts[0], ()))


def resolves(path: Path, rest: list[str]) -> bool:
    if not rest:
        return True
    if path.stem == "__init__":
        for inner in (path.parent / f"{rest[0]}.py", path.parent / rest[0] / "__init__.py"):
            if inner in sources() and resolves(inner, rest[1:]):
                return True
    return defines(path, rest[0])


def strays(text: str, teller: Path) -> list[str]:
    """What one piece of prose names of ours that is not there."""
    found = [name for name in FILE.findall(text) if name not in FOREIGN and not is_file(name, teller)]
    for name in QUOTED.findall(text):
        parts = name.split(".")
        # Elsewhere a dot belongs to a field's path, to another library, or to Go.
        if (len(parts) == 1 or parts[0] in modules()) and not (set(parts) <= words() or name in FOREIGN):
            found.append(name)
    for module, symbol in DOTTED.findall(text):
        is_ours = module.split(".")[0] in modules() or symbol in constants()
        if is_ours and not is_symbol([*module.split("."), symbol]):
            found.append(f"{module}.{symbol}")
    return found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_prose_names_is_there(folder: Path) -> None:
    found = {
        str(path.relative_to(ROOT)): missing
        for path, text in sources().items()
        if path.is_relative_to(folder)
        if (missing := [name for piece in prose(text) for name in strays(piece, path)])
    }
    assert found == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_and_symbols_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text()
    missing = [name for name in FILE.findall(text) if "/" in name and not is_file(name, page)]
    rooms = below(FOLDERS[0]) | {folder.name for folder in FOLDERS}
    for name in QUOTED_IN_PAGE.findall(text):
        parts = name.split(".")
        if parts[0] in rooms and parts[-1] not in words() and not is_symbol(parts):
            missing.append(name)
    assert missing == []


PLANTED = {
    "as replies.py says": ["replies.py"],
    "a state.py of another room": ["state.py"],
    "the server's ``Relay`` protocol": ["Relay"],
    "``make_sighting`` and ``make``": ["make_sighting"],
    "the owner (snapshot.ROOT)": ["snapshot.ROOT"],
    "see refresher.Checked, and check_schedule.BackendCheck": ["refresher.Checked"],
    "raises transport_failures.TRANSPORT_ERRORS": ["transport_failures.TRANSPORT_ERRORS"],
    "the owner (ownership.ROOT_OWNER), publisher.py, ``Publisher`` and ``len``": [],
}


@pytest.mark.parametrize(("text", "missing"), PLANTED.items())
def test_what_is_not_there_is_found(text: str, missing: list[str]) -> None:
    assert strays(text, FOLDERS[0] / "documents" / "repository.py") == missing


def test_table_of_changes_names_files_and_what_is_in_them() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## To change something")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 10
    for row in rows:
        paths = re.findall(r"`([a-z]\w*/[^`]+)`(?:: `(\w+)`)?", row)
        assert paths, row
        for path, symbol in paths:
            assert (ROOT / path).exists(), path
            if symbol:
                text = (ROOT / path).read_text(encoding="utf-8")
                assert re.search(rf"^(?:async def|def|class) {symbol}\b|^{symbol}\b", text, re.MULTILINE), row
