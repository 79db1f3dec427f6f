"""``vectors/`` is what its script makes, has the form it says, and specmux answers it as it says."""

from __future__ import annotations

import gzip
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from specmux_aggregator.cli import main
from vectors.make_vectors import VECTORS, files

DOCS = VECTORS.parent / "docs"
ANSWERS = Path(__file__).with_name("specmux_answers.py")
SMALL = {
    "$schema": "vectors.schema.json",
    "name": "small",
    "task": "scalar",
    "about": "Two texts.",
    "judge": "nobody",
    "recorder": "not kept",
    "release": "1.37",
    "cases": [
        {"id": "small/1", "input": {"type": "quantity", "text": "1"}, "verdict": "valid"},
        {
            "id": "small/2",
            "input": {"type": "quantity", "text": "x"},
            "verdict": "invalid",
            "disagreements": [{"implementation": "lenient", "reason": "it takes all"}],
        },
        {
            "id": "small/3",
            "task": "parse",
            "input": {"text": "a: 1"},
            "verdict": "valid",
            "output": [{"a": 1}],
        },
    ],
}
RIGHT = [
    {"id": "small/1", "verdict": "valid"},
    {"id": "small/2", "verdict": "invalid"},
    {"id": "small/3", "output": [{"a": 1.0}]},
]
LENIENT = [RIGHT[0], {"id": "small/2", "verdict": "valid"}, RIGHT[2]]
OTHER = [*RIGHT[:2], {"id": "small/3", "output": []}]


@pytest.fixture(scope="module")
def made() -> dict[Path, bytes]:
    return dict(files())


def test_the_files_are_what_the_script_makes(
    made: dict[Path, bytes], tally: Callable[[str, int], None]
) -> None:
    assert {path for path in VECTORS.glob("*.json*") if ".schema." not in path.name} == set(made)
    for path, text in made.items():
        found = path.read_bytes()
        assert (gzip.decompress(found) if path.suffix == ".gz" else found) == text, path.name
    tally("vectors", sum(len(orjson.loads(text)["cases"]) for text in made.values()))
    assert sum(path.stat().st_size for path in made) < 1_200_000


def test_every_file_has_the_one_form(made: dict[Path, bytes]) -> None:
    schema = jsonschema_rs.Draft202012Validator((VECTORS / "vectors.schema.json").read_text())
    ids: set[str] = set()
    for path, text in made.items():
        file = orjson.loads(text)
        assert [each.message for each in schema.iter_errors(file)] == [], path.name
        for case in file["cases"]:
            assert case["id"].partition("/")[0] == file["name"] == path.name.partition(".")[0]
            assert case["verdict"] == "valid" or "output" not in case
            assert (
                not isinstance(case["input"].get("schema"), str) or case["input"]["schema"] in file["schemas"]
            )
            assert case["id"] not in ids
            ids.add(case["id"])
    assert len(ids) > 17_000


@pytest.mark.long
def test_specmux_answers_as_kubernetes_code_does(tally: Callable[[str, int], None]) -> None:
    found = report(shlex.join([sys.executable, str(ANSWERS)]), VECTORS, "--as", "specmux")
    assert found["code"] == 0, found
    assert {each["known"] for each in found["different"]} != {""}
    tally("vectors that specmux answers", sum(each["equal"] for each in found["sets"]))


def test_specmux_answers_the_small_sets() -> None:
    for name in ("conversions.json", "protobuf.json", "schema-changes.json", "unions.json"):
        found = report(shlex.join([sys.executable, str(ANSWERS)]), VECTORS / name, "--as", "specmux")
        assert found["code"] == 0, found


def report(command: str, place: Path, *words: str) -> dict[str, Any]:
    done = CliRunner().invoke(main, ["conformance", "--vectors", command, str(place), "-o", "json", *words])
    if not done.stdout:
        return {"code": done.exit_code, "said": done.stderr}
    document = json.loads(done.stdout)
    Draft202012Validator(json.loads((DOCS / "conformance-report.schema.json").read_text())).validate(document)
    return {"code": done.exit_code, **document}


def answering(folder: Path, answers: list[dict[str, Any]], code: int = 0) -> str:
    """A command that gives these answers, whatever it is asked."""
    program = folder / "answers.py"
    text = "\n".join(json.dumps(each) for each in answers)
    program.write_text(f"import sys\nsys.stdin.read()\nprint({text!r})\nsys.exit({code})\n")
    return shlex.join([sys.executable, str(program)])


@pytest.mark.parametrize(
    ("answers", "words", "code"),
    [
        (RIGHT, (), 0),
        (RIGHT[::-1], (), 0),
        (LENIENT, (), 1),
        (LENIENT, ("--fail-on", "never"), 0),
        (LENIENT, ("--as", "lenient"), 0),
        (OTHER, (), 1),
        (OTHER, ("--as", "lenient"), 1),
        (RIGHT[:2], (), 5),
        ([*RIGHT[:2], {"id": "small/3", "skipped": "no YAML"}], (), 5),
        (RIGHT[:2], ("--allow-untested",), 0),
        ([*LENIENT[:2]], ("--allow-untested",), 1),
        ([{"verdict": "valid"}], (), 4),
    ],
)
def test_exit_codes(answers: list[dict[str, Any]], words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    (tmp_path / "small.json").write_text(json.dumps(SMALL))
    assert report(answering(tmp_path, answers), tmp_path / "small.json", *words)["code"] == code


def test_a_report_counts_and_names(tmp_path: Path) -> None:
    (tmp_path / "small.json").write_text(json.dumps(SMALL))
    command = answering(tmp_path, LENIENT[:2])
    found = report(command, tmp_path / "small.json")
    (told,) = found["sets"]
    assert (told["cases"], told["equal"], told["different"], told["unanswered"]) == (3, 1, 1, 1)
    assert found["different"] == [{"id": "small/2", "answer": "valid, not invalid", "known": ""}]
    done = CliRunner().invoke(main, ["conformance", "--vectors", command, str(tmp_path / "small.json")])
    assert "small/2" in done.stdout
    assert "1 of 3 answers" in done.stdout


def test_missing_command_is_named_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "small.json").write_text(json.dumps(SMALL))
    done = CliRunner().invoke(main, ["conformance", "--vectors", "nope", str(tmp_path / "small.json")])
    said = "Error: nope: No such file or directory; is the command of --vectors installed?\n"
    assert (done.exit_code, done.stderr) == (4, said)


@pytest.mark.parametrize(
    ("command", "text", "code"),
    [
        ("no-such-command", json.dumps(SMALL), 4),
        ("", json.dumps(SMALL), 2),
        ("'open", json.dumps(SMALL), 2),
        ("true", "{}", 3),
        (
            "true",
            json.dumps({**SMALL, "cases": [{"id": "a", "input": {"schema": "b"}, "verdict": "valid"}]}),
            3,
        ),
        ("false", json.dumps(SMALL), 4),
    ],
)
def test_what_cannot_be_judged(command: str, text: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "small.json").write_text(text)
    assert report(command, tmp_path / "small.json")["code"] == code
    assert report("true", tmp_path / "none.json")["code"] == 3
