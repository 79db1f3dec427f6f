"""Whichever command comes first on a machine, the disk cache works for every command after it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import orjson
import pytest
from click.testing import CliRunner

from data.explained_documents import bed
from fakes.openapi_server import Reference
from fakes.openapi_thread import serving_in_thread
from specmux_aggregator.cli import main

SERVER = ("--server", "{url}")
COMMANDS = {
    "cache clear": (),
    "cache compact": (),
    "cache doctor": (),
    "cache export": ("{folder}/out.bundle", *SERVER),
    "cache get": ("garden.example.org/v1", *SERVER),
    "cache import": ("{folder}/in.bundle", *SERVER),
    "cache ls": (),
    "cache paths": SERVER,
    "cache stats": (),
    "cache verify": (),
    "cache warm": SERVER,
    "check": ("{folder}/document.json", "--jobs", "1"),
    "convert": SERVER,
    "diff": ("{url}", "{url}"),
    "explain": ("bed", *SERVER),
    "get": SERVER,
    "mcp": SERVER,
    "merge": SERVER,
    "schemas": ("{folder}/schemas", *SERVER),
    "search": ("name", "--file", "{folder}/document.json"),
    "snapshot": ("{folder}/snapshot", *SERVER),
    "upgrade": ("{folder}/bed.json", "--from", "{url}", "--to", "{url}"),
    "validate": ("{folder}/bed.json", *SERVER),
}
"""Every command that has a disk cache, and what it is given. ``search`` keeps an index of files."""
REFUSED = ("using memory instead", "not a cache of specmux", "not kept", "BAD")


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Files and a server, by their names in ``COMMANDS``."""
    folder = tmp_path_factory.mktemp("given")
    document = orjson.dumps({"info": {"title": "t", "version": "1"}, **bed(name={"type": "string"})})
    (folder / "document.json").write_bytes(document)
    os.utime(folder / "document.json", (1, 1))  # the index of a file that is new is not kept
    bed_object = {"apiVersion": "garden.example.org/v1", "kind": "Bed", "metadata": {"name": "a"}}
    (folder / "bed.json").write_bytes(orjson.dumps(bed_object))
    with serving_in_thread(Reference({"apis/garden.example.org/v1": document})) as server:
        words = {"folder": str(folder), "url": server.url}
        for command in ("cache warm", "cache export"):
            in_process(command, words, folder / "cache")
        shutil.move(folder / "out.bundle", folder / "in.bundle")
        yield words


def arguments_of(command: str, words: dict[str, str]) -> list[str]:
    return [*command.split(), *(each.format(**words) for each in COMMANDS[command])]


def in_process(command: str, words: dict[str, str], cache: Path) -> str:
    return run(command, words, {"XDG_CACHE_HOME": str(cache.parent), "SPECMUX_CACHE_DIRECTORY": str(cache)})


def run(command: str, words: dict[str, str], environment: dict[str, str | None]) -> str:
    result = CliRunner().invoke(main, arguments_of(command, words), env=environment, catch_exceptions=False)
    assert result.exit_code in {0, 1, 5}, result.output
    assert not any(each in result.output for each in REFUSED), (command, result.output)
    return result.output


def test_every_command_with_a_disk_cache_is_tried() -> None:
    context = click.Context(main)
    found = set()
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found |= {f"{name} {each}" for each in command.list_commands(context)}
        elif any(each.name == "cache_directory" for each in command.params):
            found.add(name)
    # It needs Kubernetes' published documents: tests/tools/sources/test_published_documents.py runs it.
    assert found - {"cache fetch"} == COMMANDS.keys()


@pytest.mark.parametrize("first", COMMANDS)
def test_any_command_first_and_every_command_second(
    first: str, words: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    others = ("XDG_CACHE_HOME", "KUBECONFIG", "SPECMUX_SERVER", "SPECMUX_CACHE_DIRECTORY")
    run(first, words, {"HOME": str(home), **dict.fromkeys(others)})
    left = home / ".cache/specmux"
    for second in COMMANDS:
        cache = tmp_path / "caches" / second.replace(" ", "-")
        if left.exists():
            shutil.copytree(left, cache)
        in_process(second, words, cache)


@pytest.mark.parametrize("names", [(), (f"{'0a' * 32}.json", f".{'1b' * 32}.json.0123456789abcdef")])
def test_a_cache_that_check_alone_made_is_one_again(
    names: tuple[str, ...], words: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "cache/checks").mkdir(parents=True)
    for name in names:
        (tmp_path / "cache/checks" / name).write_bytes(b"[]")
    assert "1 fetched" in in_process("cache warm", words, tmp_path / "cache")
    assert "1 present" in in_process("cache warm", words, tmp_path / "cache")
    assert not (tmp_path / "cache/checks").exists()


def test_a_folder_of_another_program_is_left_alone(words: dict[str, str], tmp_path: Path) -> None:
    kept = tmp_path / "cache/checks/notes.json"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"mine")
    with pytest.raises(AssertionError, match="not a cache of specmux"):
        in_process("cache warm", words, tmp_path / "cache")
    assert [each.read_bytes() for each in kept.parent.iterdir()] == [b"mine"]
