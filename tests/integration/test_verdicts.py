"""One verdict through every door: the command, the hook's, HTTP, the library, the agents'.

300 objects, the typical mistakes of manifests, and texts that are no plain UTF-8.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from running.validating import KIND, Shop, order, run, write_documents
from shared_data import DATA
from specmux_aggregator.cli import main
from specmux_tools import validate
from specmux_tools.errors import InvalidPath
from specmux_tools.mcp.library import Library
from specmux_tools.sources.disk.files import FileSource
from specmux_tools.validation import ValidationReport, Validator

pytestmark = pytest.mark.long

SIZE = 300
STRICT = "?report=1&fieldValidation=Strict"
VALID, INVALID, UNCHECKED = "valid", "invalid", "not-checked"


def objects() -> list[dict[str, Any]]:
    """Named by their number; about half are valid."""
    chance = random.Random(24)
    made = []
    for number in range(SIZE):
        value = order(f"order-{number}", count=chance.randint(1, 9), lines=["a"] * chance.randint(0, 3))
        for spoil in chance.sample(SPOILS, chance.choice((0, 0, 1, 1, 2))):
            spoil(value, chance)
        made.append(value)
    return made


def in_spec(name: str, *values: Any) -> Callable[[dict[str, Any], random.Random], None]:
    def spoil(value: dict[str, Any], chance: random.Random) -> None:
        value["spec"][name] = chance.choice(values)

    return spoil


def in_metadata(name: str, *values: Any) -> Callable[[dict[str, Any], random.Random], None]:
    def spoil(value: dict[str, Any], chance: random.Random) -> None:
        value["metadata"][name] = chance.choice(values)

    return spoil


def of_type(name: str, *values: str) -> Callable[[dict[str, Any], random.Random], None]:
    def spoil(value: dict[str, Any], chance: random.Random) -> None:
        value[name] = chance.choice(values)

    return spoil


SPOILS = [
    in_spec("count", 0, -1, "one", 1.5, None, 2**40),
    in_spec("lines", "a", [1], [None], {}, ["a"] * 2000),  # the last takes more steps than a rule may
    in_spec("name", "", 3, "\u001b[0m", "x" * 300),
    in_spec("extra", True, None, {}),
    in_metadata("labels", {"a b": "c"}, {"a": "b c"}, {"a": 1}, {"good": "one"}),
    in_metadata("namespace", "A", "shop", "a.b"),
    in_metadata("finalizers", ["x"], ["example.org/x"], [""]),
    in_metadata("unknown", 1),
    of_type("kind", "order", "Orders", "Deployment", ""),
    of_type("apiVersion", "shop.example.org/v2", "v1", "a/b/c"),
]


def verdict(*, is_valid: bool, is_complete: bool) -> str:
    return INVALID if not is_valid else VALID if is_complete else UNCHECKED


def of_report(report: ValidationReport) -> str:
    return verdict(is_valid=report.is_valid, is_complete=report.is_complete)


def by_command(folder: Path, body: bytes, *options: str) -> list[str]:
    (folder / "objects.json").write_bytes(body)
    documents = ["--directory", str(folder / "documents"), *options]
    done = CliRunner().invoke(main, ["validate", "-o", "json", *documents, str(folder / "objects.json")])
    listed = orjson.loads(done.stdout)["objects"]
    assert done.exit_code == 1
    return [each["status"] for each in listed]


def by_agent(folder: Path, body: bytes) -> list[str]:
    library = Library(FileSource(directories=[folder / "documents"]), is_ordered=False)
    answer = library.validate(body.decode())
    assert answer["valid"] is False
    alone = [library.validate(line.decode())["valid"] for line in body.splitlines()[:40]]
    assert alone == [each["valid"] for each in answer["objects"][:40]]
    return [VALID if each["valid"] else INVALID for each in answer["objects"]]


@pytest.mark.long
def test_every_door_says_the_same(tmp_path: Path, tally: Callable[[str, int], None]) -> None:
    (tmp_path / "documents").mkdir()
    write_documents(tmp_path / "documents")
    bodies = [orjson.dumps(each) for each in objects()]
    whole = b"\n".join(bodies)
    loaded = FileSource(directories=[tmp_path / "documents"]).load()
    validator = Validator(loaded.documents)
    told = {
        "library": [of_report(validator.validate(body)) for body in bodies],
        "command": by_command(tmp_path, whole),
        "hook": by_command(tmp_path, whole, "--skip-non-objects"),
        "agent": by_agent(tmp_path, whole),
    }

    async def scenario(shop: Shop) -> None:
        gate = asyncio.Semaphore(8)

        async def ask(body: bytes) -> str:
            async with gate:
                for _ in range(5):  # a busy machine may say when to come again
                    status, headers, answer = await shop.post(body, STRICT)
                    if status != 503:
                        break
                    await asyncio.sleep(float(headers["Retry-After"]))
            if status != 200:
                assert status in (400, 404), answer
                return INVALID
            return verdict(is_valid=answer["valid"], is_complete=answer["complete"])

        told["http"] = list(await asyncio.gather(*map(ask, bodies)))

    run(tmp_path / "documents", scenario, most=16)
    expected = told["library"]
    for door, verdicts in told.items():
        # To a model what was not checked in full is not valid, and the note says why.
        wanted = [INVALID if door == "agent" and each == UNCHECKED else each for each in expected]
        differing = {n: (bodies[n], each, wanted[n]) for n, each in enumerate(verdicts) if each != wanted[n]}
        assert not differing, (door, differing)
    counted = Counter(expected)
    assert counted[VALID] > 50 < counted[INVALID]
    tally("objects with one verdict at five doors", len(expected))


ORDER = orjson.dumps(order("odd", lines=["NAME"]))
ODD = {
    "plain": ORDER,
    "surrogate.escaped": ORDER.replace(b"NAME", rb"x\ud800"),
    "surrogate.name": ORDER.replace(b"odd", rb"x\ud800"),
    "surrogate.raw": ORDER.replace(b"NAME", b"x\xed\xa0\x80"),
    "utf-8.cut": ORDER.replace(b"NAME", b"\xc3"),
    "utf-16": ORDER.decode().encode("utf-16"),
    "utf-16.unmarked": ORDER.decode().encode("utf-16-le"),
    "mark": b"\xef\xbb\xbf" + ORDER,
    "mark.later": ORDER.replace(b"NAME", b"\xef\xbb\xbf"),
    "control.raw": ORDER.replace(b"NAME", b"\x01"),
    "control.escaped": ORDER.replace(b"NAME", rb"\u0001\u001b[0m"),
    "delete": ORDER.replace(b"NAME", b"\x7f"),
    "no character": ORDER.replace(b"NAME", "\ufffe".encode()),
    "list": orjson.dumps({"apiVersion": "v1", "kind": "List", "items": [order("a"), order("b", count=0)]}),
    "list of its kind": orjson.dumps({**KIND, "kind": "OrderList", "metadata": {}, "items": [order("a")]}),
}


def accepted_alone(folder: Path, texts: dict[str, bytes], tmp_path: Path) -> dict[str, dict[str, bool]]:
    """By the doors that open no socket: which of the texts pass."""
    tmp_path.mkdir()
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_bytes(text)
    documents = FileSource(directories=[folder]).load().documents.documents
    agents = Library(FileSource(directories=[folder]), is_ordered=False)

    def by_files(*options: str) -> dict[str, bool]:
        words = ["validate", "-o", "json", "--workers", "1", "--directory", str(folder), *options]
        done = CliRunner().invoke(main, [*words, str(tmp_path)])
        passes = dict.fromkeys(texts, True)
        for each in orjson.loads(done.stdout)["objects"]:
            passes[Path(each["file"]).stem] &= each["status"] == "valid"
        assert done.exit_code == 1
        return passes

    def by_library(text: bytes) -> bool:
        try:
            return all(each.is_valid and each.is_complete for each in validate(documents, text))
        except InvalidPath:
            return False

    return {
        "command": by_files(),
        "hook": by_files("--skip-non-objects"),
        "library": {name: by_library(text) for name, text in texts.items()},
        # A tool is sent a text: what is no UTF-8 does not get there.
        "agent": {
            name: bool(agents.validate(text.decode())["valid"])
            for name, text in texts.items()
            if _is_text(text)
        },
    }


def accepted_over_http(folder: Path, texts: dict[str, bytes]) -> dict[str, bool]:
    """What does not begin as JSON is sent as YAML; the odd texts are bent JSON."""
    passes = {}

    async def scenario(shop: Shop) -> None:
        for name, text in texts.items():
            form = "yaml" if texts is not ODD and text[:1] != b"{" else "json"
            status, _, answer = await shop.post(text, STRICT, content_type=f"application/{form}")
            reports = answer.get("items", [answer])
            passes[name] = status == 200 and all(each["valid"] and each["complete"] for each in reports)

    run(folder, scenario)
    return passes


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def assert_equal(told: dict[str, dict[str, bool]]) -> None:
    expected = told["library"]
    for door, verdicts in told.items():
        differing = {name: each for name, each in verdicts.items() if each != expected[name]}
        assert not differing, (door, differing)


def test_odd_texts_are_judged_the_same(tmp_path: Path, tally: Callable[[str, int], None]) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    write_documents(folder)
    told = accepted_alone(folder, ODD, tmp_path / "texts")

    told["http"] = accepted_over_http(folder, ODD)
    # A file may be of any encoding, a body in JSON is UTF-8 (RFC 8259, 8.1), as to an apiserver.
    assert told["http"].pop("utf-16") is False
    # A file is read as kubectl reads it, as YAML where it is no JSON; a body in JSON is JSON.
    assert told["http"].pop("mark") is False
    assert_equal(told)
    assert 3 < sum(told["library"].values()) < len(ODD)
    tally("odd texts with one verdict at five doors", len(ODD))


@pytest.mark.long
def test_mistakes_are_judged_the_same(tmp_path: Path, tally: Callable[[str, int], None]) -> None:
    """Over HTTP those that bring no definition: they are judged by what is in the same text."""
    folder = copytree(DATA / "k8s-pairs/1.35/v3", tmp_path / "documents")
    files = (DATA / "defects/mistakes").iterdir()
    texts = {each.stem: each.read_bytes() for each in files if each.suffix in (".yaml", ".json")}
    assert len(texts) == 47
    told = accepted_alone(folder, texts, tmp_path / "texts")
    alone = {name: text for name, text in texts.items() if b"CustomResourceDefinition" not in text}
    told["http"] = accepted_over_http(folder, alone)
    # A body in YAML is UTF-8, a file may be of any encoding.
    assert told["http"].pop("15-utf16") is False
    assert told["http"].pop("39-json-trailing-comma") is False
    assert_equal(told)
    assert 3 < sum(told["library"].values()) < 10
    tally("mistakes with one verdict at four doors", len(texts))
    tally("mistakes with one verdict over HTTP, too", len(told["http"]))
