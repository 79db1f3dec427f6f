"""Every command that reads documents takes them from the same places, and finds the same in each."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import orjson
import pytest
from click.testing import CliRunner, Result

from data.compared import document
from fakes.openapi_server import Reference
from fakes.openapi_thread import serving_in_thread
from specmux_aggregator.cli import main

KEY = "apis/example.com/v1"
FIELDS = {"type": "object", "properties": {"size": {"type": "integer", "description": "How large."}}}
NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
WIDGETS = document(FIELDS)
for item in WIDGETS["paths"].values():
    item["parameters"] = [NAME]
PLACES = ("folder", "file", "server", "git", "bundle", "url", "snapshot")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in ("KUBECONFIG", "SPECMUX_SERVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def places(tmp_path: Path) -> Iterator[dict[str, str]]:
    """One document in every place that there is."""
    file = tmp_path / "documents" / f"{KEY}.json"
    file.parent.mkdir(parents=True)
    body = orjson.dumps(WIDGETS)
    file.write_bytes(body)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "documents"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    with serving_in_thread(Reference({KEY: body})) as server:
        bundle = tmp_path / "a.bundle"
        for words in (["warm"], ["export", str(bundle)]):
            done = run("cache", *words, "--server", server.url)
            assert done.exit_code == 0, done.output
        assert run("snapshot", "--server", server.url, "kept").exit_code == 0
        yield {
            "folder": str(tmp_path / "documents"),
            "file": str(file),
            "server": server.url,
            "git": "git:main:documents",
            "bundle": str(bundle),
            "snapshot": "oci:kept:latest",
            "url": f"{server.url}/openapi/v3/{KEY}",
        }


def run(*words: str) -> Result:
    return CliRunner().invoke(main, [*words], prog_name="specmux")


def option_of(place: str, word: str) -> list[str]:
    option = {"folder": "--directory", "server": "--server"}.get(place, "--file")
    return [option, word]


@pytest.mark.parametrize("place", PLACES)
def test_words_name_the_same_document_for_every_command(places: dict[str, str], place: str) -> None:
    word = places[place]
    converted = run("convert", word)
    assert (converted.exit_code, orjson.loads(converted.stdout)) == (0, WIDGETS), converted.output
    merged = run("merge", word)
    assert merged.exit_code == 0, merged.output
    assert orjson.loads(merged.stdout)["components"] == WIDGETS["components"]
    checked = run("check", word)
    assert (checked.exit_code, checked.stdout[:11]) == (0, "1 document:"), checked.output
    compared = run("diff", places["file"], word)
    assert (compared.exit_code, compared.stdout) == (0, "no changes\n"), compared.output


@pytest.mark.parametrize("place", [place for place in PLACES if place != "url"])
def test_options_name_the_same_document_for_every_command(
    places: dict[str, str], place: str, tmp_path: Path
) -> None:
    options = option_of(place, places[place])
    assert orjson.loads(run("convert", *options).stdout) == WIDGETS
    assert run("merge", *options).exit_code == 0
    assert run("check", *options).stdout.startswith("1 document:")
    assert "How large." in run("explain", "widget.spec.size", *options).stdout
    assert run("get", *options).stdout == f"{KEY}\n"
    manifest = tmp_path / "widget.yaml"
    manifest.write_text("apiVersion: example.com/v1\nkind: Widget\nspec: {size: large}\n")
    told = run("validate", str(manifest), *options)
    assert told.exit_code == 1
    assert "spec.size" in told.stdout


def test_a_place_that_is_not_there_is_an_unreadable_input_everywhere() -> None:
    for command in ("convert", "merge", "check"):
        result = run(command, "none")
        assert result.exit_code == 3
        assert "does not exist: no such file or folder" in result.output
    assert run("diff", "none", "none").exit_code == 3


def test_the_options_of_sources_are_on_every_command_that_reads_documents() -> None:
    wanted = {"server", "kubeconfig", "context", "directories", "files", "token_file", "cache_directory"}
    for name in ("check", "convert", "explain", "get", "merge", "schemas", "search", "snapshot", "validate"):
        command = main.get_command(click.Context(main), name)
        assert command is not None
        assert wanted <= {option.name for option in command.params}, name
