"""``specmux explain`` and ``specmux search``, over files and over a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from click.testing import CliRunner, Result

from data.explained_documents import bed
from specmux_aggregator.cli import main

V1 = "garden.example.org/v1"
NAME = {"type": "string", "description": "What it is called.", "default": "bed", "maxLength": 9}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for version in ("v1", "v1beta1"):
        document: Any = bed(name=NAME, **({"old": NAME} if version == "v1beta1" else {}))
        text = orjson.dumps(document).replace(b'"version":"v1"', f'"version":"{version}"'.encode())
        text = text.replace(b"garden.example.org/v1/", f"garden.example.org/{version}/".encode())
        path = tmp_path / "apis" / "garden.example.org" / f"{version}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    return tmp_path


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--directory", str(folder)])


def test_field_is_explained_and_other_versions_are_named(folder: Path) -> None:
    done = run(folder, "explain", "beds.spec.name")
    assert done.exit_code == 0
    assert "KIND:       Bed\nVERSION:    v1\n" in done.stdout
    assert 'DEFAULT:\n    "bed"\nLIMITS:\n    maxLength 9\n' in done.stdout
    assert "ALSO IN:\n    garden.example.org/v1beta1\n" in done.stdout
    assert "there is also Bed of garden.example.org/v1beta1" in done.stderr


def test_plain_text_has_nothing_added(folder: Path) -> None:
    done = run(
        folder, "explain", "beds.spec.name", "-o", "plaintext", "--api-version", "garden.example.org/v1"
    )
    assert done.stdout == (
        "GROUP:      garden.example.org\nKIND:       Bed\nVERSION:    v1\n\nFIELD: name <string>\n\n\n"
        "DESCRIPTION:\n    What it is called.\n    \n\n"
    )
    assert done.stderr == ""


def test_plain_text_names_external_documentation(tmp_path: Path) -> None:
    path = tmp_path / "apis" / "garden.example.org" / "v1.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(orjson.dumps(bed(name={**NAME, "externalDocs": {"url": "https://a.example"}})))
    shown = ("explain", "beds.spec.name", "-o", "plaintext")
    assert "EXTERNAL DOCS:" in run(tmp_path, *shown).stdout


def test_type_is_taken_as_manifests_write_it(folder: Path) -> None:
    ways = (["garden.example.org/v1 Bed"], ["garden.example.org/v1", "Bed"], ["garden.example.org/v1/Bed"])
    texts = {run(folder, "explain", *words).stdout for words in ways}
    assert len(texts) == 1 and "VERSION:    v1\n" in texts.pop()


def test_every_version_is_explained_when_asked(folder: Path) -> None:
    both = yaml.safe_load(run(folder, "explain", "bed.spec.name", "--all-versions", "-o", "yaml").stdout)
    assert [each["version"] for each in both] == ["v1", "v1beta1"]
    one = run(folder, "explain", "bed.spec.old", "--all-versions")
    assert (one.exit_code, 'field "old" does not exist' in one.stderr) == (1, True)


def test_json_has_the_fields_below(folder: Path) -> None:
    told = orjson.loads(
        run(folder, "-o", "json", "explain", "bed", "--api-version=garden.example.org/v1").stdout
    )
    assert [each["name"] for each in told["fields"]] == ["apiVersion", "kind", "metadata", "spec"]
    assert told["truncated"] is True
    deep = orjson.loads(run(folder, "explain", "bed", "-R", "-o", "json").stdout)
    assert deep["fields"][-1]["fields"][0]["default"] == "bed"


def test_skeleton_is_a_manifest(folder: Path) -> None:
    value = yaml.safe_load(run(folder, "explain", "bed", "-o", "skeleton").stdout)
    assert value["apiVersion"] == "garden.example.org/v1"


@pytest.mark.parametrize(
    ("subject", "code", "message"),
    [
        ("bedd", 1, "no kind, resource or short name 'bedd'; did you mean Bed"),
        ("bed.spec.nam", 1, 'field "nam" does not exist; did you mean name?'),
        ("bed.spec[", 2, "unexpected '['"),
    ],
)
def test_what_is_not_there_is_said(folder: Path, subject: str, code: int, message: str) -> None:
    done = run(folder, "explain", subject)
    assert (done.exit_code, message in done.stderr) == (code, True), done.stderr


def test_search_prints_rows(folder: Path) -> None:
    done = run(folder, "search", "bed", "called")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[1].split()[:3] == ["Bed.spec.name", "string", "garden.example.org/v1"]
    rows = orjson.loads(run(folder, "search", "old", "-o", "json").stdout)["rows"]
    assert [(row["version"], row["path"]) for row in rows] == [("v1beta1", "spec.old")]
    assert run(folder, "search", "frost").exit_code == 1
    assert run(folder, "search", *"bcdefghjk").exit_code == 2
