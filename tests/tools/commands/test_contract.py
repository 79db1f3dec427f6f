"""One contract for all commands, over click's tree: options mean the same, and stand where they like."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from specmux_aggregator.cli import main
from specmux_aggregator.command_line.common_options import HABITS

SERVER = {
    "--server",
    "--kubeconfig",
    "--context",
    "--token-file",
    "--ca-file",
    "--client-certificate",
    "--client-key",
    "--insecure-skip-tls-verify",
    "--tls-server-name",
    "--request-timeout",
}
OWN_SERVER = {"cache ls", "cache doctor", "cache fetch", "serve", "init", "check-config"}
"""Whose --server or --kubeconfig names something else than where documents are asked for."""


def leaves() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(main, info_name="specmux")
    groups: list[tuple[str, click.Group, click.Context]] = [("", main, context)]
    for prefix, group, above in groups:
        for name in group.list_commands(above):
            command = group.get_command(above, name)
            assert command is not None
            full = f"{prefix} {name}".strip()
            if isinstance(command, click.Group):
                groups.append((full, command, click.Context(command, info_name=name, parent=above)))
            else:
                yield full, command


LEAVES = [pytest.param(name, command, id=name) for name, command in leaves()]


def options(command: click.Command) -> dict[str, click.Option]:
    return {
        name: option
        for option in command.params
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
    }


@pytest.mark.parametrize(("name", "command"), LEAVES)
def test_common_options_are_there(name: str, command: click.Command) -> None:
    assert {"--verbose", "--quiet", "--output", "--help"} <= {*options(command), "--help"}


@pytest.mark.parametrize(("name", "command"), LEAVES)
def test_options_of_a_source_come_together(name: str, command: click.Command) -> None:
    mine = options(command)
    if name not in OWN_SERVER and SERVER & mine.keys():
        assert mine.keys() >= SERVER
    if "--file" in mine or "--directory" in mine:
        assert name in ("serve", "ui", "check-config", "init") or {"--file", "--directory"} <= mine.keys()
    if not name.startswith("cache "):  # whose group has it
        assert ("--cache-directory" in mine) == ("--offline" in mine)


@pytest.mark.parametrize(("name", "command"), LEAVES)
def test_help_is_written_alike(name: str, command: click.Command) -> None:
    assert (command.help or "").strip()
    for label, option in options(command).items():
        if option.hidden:
            continue
        text = (option.help or "").strip()
        assert text, label
        assert text[0].isupper() or not text[0].isalpha(), (label, text)
        assert text.partition("  [")[0].rstrip().endswith("."), (label, text)


UNWANTED = re.compile(
    r"\b(what is|told|leaves?|of ours|one that|whoever|hands out|passes over)\b", re.IGNORECASE
)


@pytest.mark.parametrize(("name", "command"), LEAVES)
def test_help_has_plain_words(name: str, command: click.Command) -> None:
    texts = [command.help, command.epilog, *(option.help for option in options(command).values())]
    assert [found[0] for text in texts if (found := UNWANTED.search(text or ""))] == []


@pytest.mark.parametrize(("name", "command"), LEAVES)
def test_no_value_has_a_capital_in_help(name: str, command: click.Command) -> None:
    for label, option in options(command).items():
        values = [str(each) for each in getattr(option.type, "choices", ())]
        first = re.split(r"[ ,.]", option.help or "")[0]
        assert first not in [each.capitalize() for each in values], label


@pytest.mark.parametrize(("name", "command"), LEAVES)
def test_help_fits_a_terminal(name: str, command: click.Command) -> None:
    text = CliRunner().invoke(main, [*name.split(), "--help"]).output
    text = text.partition("\n  Examples:")[0]
    assert [line for line in text.splitlines() if len(line) > 80 and not line.startswith("  -")] == []


@pytest.mark.parametrize(
    "line", ["schemas -", "convert x.json --split -", "cache export - --server http://127.0.0.1:1"]
)
def test_folders_and_bundles_are_not_standard_output(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.json").touch()
    found = CliRunner().invoke(main, line.split())
    assert (found.exit_code, "- is standard output" in found.output) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_documents_go_to_standard_output_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = '{"openapi": "3.0.0", "info": {"title": "a", "version": "1"}, "paths": {}}'
    (tmp_path / "x.json").write_text(document)
    for line in ("convert x.json", "merge x.json"):
        found = [CliRunner().invoke(main, [*line.split(), *more]) for more in ([], ["--output-file", "-"])]
        assert found[1].exit_code == 0
        assert found[0].stdout == found[1].stdout != ""
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize("line", ["version", "get --file x.json", "get a.io/v1 --file x.json", "cache stats"])
def test_answer_that_nobody_can_read_is_an_error(line: str, tmp_path: Path) -> None:
    document = '{"openapi": "3.0.0", "info": {"title": "a", "version": "1"}, "paths": {"/apis/a.io/v1/": {}}}'
    (tmp_path / "x.json").write_text(document)
    shell = f'exec "{sys.executable}" -m specmux_aggregator.cli {line} >&-'
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        ["sh", "-c", shell], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60
    )
    assert (done.returncode, done.stderr) == (3, "Error: standard output: closed\n")


def test_missing_kubeconfig_is_answered_with_options_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    for line, step in (
        (["get", "-w"], "give --server URL, --kubeconfig FILE, --directory DIR or --file FILE"),
        (["cache", "paths"], "give --server URL or --kubeconfig FILE\n"),
    ):
        found = CliRunner().invoke(main, line)
        assert (found.exit_code, step in found.output) == (2, True), found.output


def test_mcp_without_its_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:  # other tests of this process may have imported it
        if name.partition(".")[0] == "mcp" or name == "specmux_tools.mcp.server":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    found = CliRunner().invoke(main, ["mcp", "--file", __file__])
    assert found.exit_code == 2
    assert "is missing: pip install 'specmux[mcp]'" in found.output
    assert "specmux[mcp]" in CliRunner().invoke(main, ["mcp", "--help"]).output


@pytest.mark.parametrize(("name", "command"), LEAVES)
def test_output_that_a_command_has_not_is_refused_before_and_after_its_name(
    name: str, command: click.Command
) -> None:
    if not options(command)["--output"].hidden:
        return
    words = name.split()
    for line in (["-o", "json", *words], [*words, "--output", "json"]):
        found = CliRunner().invoke(main, line)
        assert found.exit_code == 2
        assert "it has no --output" in found.output


@pytest.mark.parametrize("line", [["-q", "version"], ["version", "-q"], ["version", "--verbose"]])
def test_verbosity_stands_anywhere(line: list[str]) -> None:
    assert CliRunner().invoke(main, line).exit_code == 0


def test_quiet_and_verbose_contradict_each_other_wherever_they_stand() -> None:
    for line in (["-q", "-v", "version"], ["-q", "version", "-v"], ["version", "-v", "-q"]):
        found = CliRunner().invoke(main, line)
        assert (found.exit_code, "contradict" in found.output) == (2, True)


@pytest.mark.parametrize("word", sorted(HABITS.keys() - {"--version", "--recursive", "-R", "--file"}))
def test_options_of_other_tools_are_answered_with_ours(word: str) -> None:
    found = CliRunner().invoke(main, ["validate", word, "x"])
    assert found.exit_code == 2
    assert HABITS[word] in found.output
