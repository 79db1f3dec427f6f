"""The command line as a whole: quick, listed, with examples that are true."""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import orjson
import pytest
import yaml
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from data.explained_documents import KIND, bed
from fakes.openapi_server import Reference, Reply, Request, document
from fakes.openapi_thread import serving_in_thread
from specmux_aggregator import console
from specmux_aggregator.cli import SECTIONS, main
from specmux_aggregator.version import VERSION
from specmux_converters.group_versions import GroupVersion
from specmux_tools.sources import SourceOptions, open_documents

QUICK = 0.15
"""Seconds of processor time that an answer without work may take."""

HEAVY = {
    "aiohttp", "asyncio", "cbor2", "diskcache", "jinja2", "orjson", "prometheus_client", "specmux_cache",
    "specmux_tools", "sqlite3", "ssl", "yaml", "zstandard",
}  # fmt: skip

COMPLETION = {"_SPECMUX_COMPLETE": "bash_complete", "COMP_WORDS": "specmux c", "COMP_CWORD": "1"}


def run(*arguments: Any, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(main, [str(each) for each in arguments], prog_name="specmux")


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


EVERY = [pytest.param(command, id=name) for name, command in commands()]


@pytest.mark.parametrize(
    ("arguments", "environment"), [(["--version"], {}), (["--help"], {}), (["-V"], {}), ([], COMPLETION)]
)
def test_answers_without_work_import_nothing_heavy(arguments: list[str], environment: dict[str, str]) -> None:
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('MODULES', *sys.modules))\n"
        "from specmux_aggregator.cli import main\n"
        f"main({arguments!r}, prog_name='specmux')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )
    imported = done.stdout.rpartition("MODULES ")[2].split()
    assert "click" in imported, done.stderr
    assert HEAVY & set(imported) == set()
    assert {name for name in imported if name.startswith("specmux_converters")} <= {
        "specmux_converters",
        "specmux_converters.lazy",
        "specmux_converters.lazy.dataclasses",
    }
    ours = sorted(name for name in imported if name.startswith("specmux_aggregator."))
    assert ours == [
        "specmux_aggregator.cli",
        "specmux_aggregator.command_line",
        "specmux_aggregator.command_line.common_options",
        "specmux_aggregator.command_line.lazy_commands",
        "specmux_aggregator.command_line.output",
        "specmux_aggregator.console",
        "specmux_aggregator.errors",
        "specmux_aggregator.exits",
        "specmux_aggregator.version",
    ]


@pytest.mark.parametrize(
    ("arguments", "environment"), [(["--version"], {}), (["--help"], {}), ([], COMPLETION)]
)
def test_answers_without_work_come_at_once(arguments: list[str], environment: dict[str, str]) -> None:
    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "specmux_aggregator.cli", *arguments],
            stdout=subprocess.DEVNULL,
            env={**os.environ, **environment},
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    assert min(seconds() for _ in range(5)) <= QUICK


def test_the_list_says_what_each_command_says_of_itself() -> None:
    listed = {name: each.summary for section in SECTIONS.values() for name, each in section.items()}
    said = {
        name: " ".join((command.help or "").split("\n\n")[0].split())
        for name, command in commands()
        if " " not in name
    }
    assert listed == said


@pytest.mark.parametrize("command", EVERY)
def test_every_command_has_examples_whose_options_exist(command: click.Command) -> None:
    lines = [line.strip() for line in (command.epilog or "").splitlines()]
    assert "Examples:" in lines
    shown = [line for line in lines[lines.index("Examples:") + 1 :] if line and not line.startswith("#")]
    assert shown
    known = dict(commands())
    for line in shown:
        words = shlex.split(line.rpartition("| ")[2].partition(" > ")[0].replace("<(", "").rstrip(")"))
        words = words[words.index("specmux") + 1 :]
        name = next(" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in known)
        options = {name for each in known[name].params for name in (*each.opts, *each.secondary_opts)}
        used = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
        assert used <= options, line


SOURCES = [
    "--server", "--kubeconfig", "--context", "--offline", "--directory", "--file",
    "--token-file", "--ca-file", "--client-certificate", "--client-key", "--insecure-skip-tls-verify",
    "--tls-server-name", "--request-timeout",
    "--cache-directory",
]  # fmt: skip
OWN = {"cache", "cache ls", "cache doctor", "init", "serve"}
"""Commands with an option of such a name that means another thing, or is a setting."""


@pytest.mark.parametrize("command", EVERY)
def test_options_stand_in_one_order_and_say_the_same_everywhere(command: click.Command) -> None:
    """A command's own first, then the output format, then where documents come from."""
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    names = [max(each.opts, key=lambda name: name in SOURCES) for each in options]
    if any(each is command for name, each in commands() if name in OWN):
        return
    sources = [name for name in names if name in SOURCES]
    assert names[len(names) - len(sources) :] == sources == [name for name in SOURCES if name in sources]
    output = next((each for each in options if "--output" in each.opts), None)
    if output is not None and command.name != "specmux":
        rest = names[options.index(output) + 1 :]
        assert [name for name in rest if name not in (*SOURCES, "--json", "--partition")] == []
        assert str(output.help).startswith("Output format")
    said = {name: each for name, each in zip(names, options, strict=True) if name in SOURCES}
    model = {max(each.opts, key=len): each for each in dict(commands())["explain"].params}
    different = [name for name, each in said.items() if each.help != getattr(model[name], "help", None)]
    assert different == []


@pytest.mark.parametrize("command", EVERY)
def test_every_option_says_what_it_does(command: click.Command) -> None:
    silent = [
        each.name
        for each in command.params
        if isinstance(each, click.Option) and not (each.help or each.hidden)
    ]
    assert silent == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("-o", "json", "cache", "stats"),
        ("cache", "-o", "json", "stats"),
        ("cache", "stats", "-o", "json"),
        ("cache", "--json", "stats"),
        ("cache", "stats", "--json"),
        ("-o", "yaml", "cache", "stats", "-o", "json"),
    ],
)
def test_the_output_format_may_stand_anywhere(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = run(*arguments, SPECMUX_CACHE_DIRECTORY=str(tmp_path / "cache"))
    assert orjson.loads(result.stdout)["entries"] == 0


def test_yaml_is_printed_too(tmp_path: Path) -> None:
    result = run("-o", "yaml", "cache", "stats", SPECMUX_CACHE_DIRECTORY=str(tmp_path / "cache"))
    assert yaml.safe_load(result.stdout)["entries"] == 0


def test_the_version_is_printed_in_three_ways() -> None:
    assert {run(word).stdout for word in ("-V", "--version", "version")} == {f"specmux {VERSION}\n"}


def test_help_is_a_command_too() -> None:
    assert run("help", "cache", "get").stdout == run("cache", "get", "--help").stdout
    result = run("help", "nothing")
    assert (result.exit_code, "specmux --help" in result.stderr) == (2, True)


def test_verbose_and_quiet_contradict_each_other() -> None:
    assert run("-v", "-q", "version").exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_the_shell(shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_SPECMUX_COMPLETE" in result.stdout


def completed(*words: str, incomplete: str = "") -> list[str]:
    shell = ShellComplete(main, {}, "specmux", "_SPECMUX_COMPLETE")
    return [item.value for item in shell.get_completions(list(words), incomplete)]


def test_commands_are_completed() -> None:
    assert completed(incomplete="co") == ["convert", "conformance", "completion"]


def test_group_versions_are_completed_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECMUX_CACHE_DIRECTORY", str(tmp_path / "cache"))
    assert completed("cache", "get") == []
    documents = {key: document(key) for key in ("api/v1", "apis/apps/v1")}
    with serving_in_thread(Reference(documents)) as server:
        assert run("cache", "warm", "--server", server.url).exit_code == 0
    assert completed("cache", "get") == ["apps/v1", "v1"]
    assert completed("cache", "get", incomplete="apis/") == ["apis/apps/v1"]


def test_kinds_are_completed_from_cached_discovery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECMUX_CACHE_DIRECTORY", str(tmp_path / "cache"))
    assert completed("explain", incomplete="d") == []
    resource = {
        "resource": "deployments", "responseKind": {"kind": "Deployment"}, "scope": "Namespaced",
        "shortNames": ["deploy"], "verbs": ["get"],
    }  # fmt: skip
    group = {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [resource]}]}
    body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [group]}
    documents = Reference({"apis/apps/v1": document("apis/apps/v1")})

    def answer(request: Request) -> Reply:
        if request.path in ("/api", "/apis"):
            media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            return Reply(200, orjson.dumps(body), [("Content-Type", media), ("Etag", '"1"')])
        return documents(request)

    with serving_in_thread(answer) as server:
        options = SourceOptions(server=server.url, cache_directory=tmp_path / "cache")
        with open_documents(options) as source:
            assert [each.name for each in source.resources()[GroupVersion("apis/apps/v1")]] == ["deployments"]
    assert completed("explain", incomplete="d") == ["Deployment", "deploy", "deployments"]
    assert completed("explain", incomplete="deploy.") == []  # no document is stored


def test_fields_are_completed_from_cached_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECMUX_CACHE_DIRECTORY", str(tmp_path / "cache"))
    soil = {"$ref": "#/components/schemas/Soil"}
    body = orjson.dumps(bed(soil=soil, size={"type": "integer"}))
    documents = Reference({f"apis/{KIND.group}/v1": body})
    resource = {
        "resource": "beds",
        "responseKind": {"group": KIND.group, "version": "v1", "kind": "Bed"},
        "scope": "Namespaced",
        "shortNames": ["bd"],
        "verbs": ["list"],
    }
    group = {"metadata": {"name": KIND.group}, "versions": [{"version": "v1", "resources": [resource]}]}

    def answer(request: Request) -> Reply:
        if request.path in ("/api", "/apis"):
            media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            body = orjson.dumps(
                {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [group]}
            )
            return Reply(200, body, [("Content-Type", media), ("Etag", '"1"')])
        return documents(request)

    with serving_in_thread(answer) as server:
        done = run("explain", "bd.spec", "--server", server.url)
        assert done.exit_code == 0, done.output
    assert completed("explain", incomplete="bd.spec.s") == ["bd.spec.size", "bd.spec.soil"]
    assert completed("explain", incomplete="beds.garden.example.org.sp") == ["beds.garden.example.org.spec"]
    assert completed("explain", incomplete="Bed.spec.soil.below.a") == ["Bed.spec.soil.below.acidity"]
    assert completed("explain", incomplete="bd.none.") == completed("explain", incomplete="pods.") == []
    assert completed("explain", incomplete="bd.[") == completed("explain", incomplete=".") == []


def test_quiet_leaves_warnings_out(tmp_path: Path) -> None:
    environment = {"SPECMUX_CACHE_DIRECTORY": str(tmp_path / "cache")}
    with serving_in_thread(Reference({"api/v1": document("core")})) as server:
        run("cache", "get", "v1", "--server", server.url, **environment)
    for arguments, told in ((("-q",), False), ((), True)):
        result = run(*arguments, "cache", "get", "v1", "--server", server.url, **environment)
        assert (result.exit_code, "stale" in result.stderr) == (0, told)


def test_flags_of_serve_are_shown_in_groups() -> None:
    common, every = run("serve", "--help").stdout, run("serve", "--help-all").stdout
    assert len(common.splitlines()) < 70
    assert "--help-all adds" in common
    names = {name for each in dict(commands())["serve"].params if not each.hidden for name in each.opts}
    assert sorted(name for name in names if name not in every) == []
    positions = [every.index(f"\n{title}:") for title in ("Sources", "Listen", "Auth", "Limits", "Logging")]
    assert positions == sorted(positions)


@pytest.mark.parametrize(("columns", "longest"), [(50, 50), (70, 70), (None, 130)])
def test_search_fits_the_terminal(
    columns: int | None, longest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = {"type": "string", "description": "A word. " + "long " * 30}
    (tmp_path / "v1.json").write_bytes(orjson.dumps(bed(name=name)))
    monkeypatch.setattr("specmux_tools.commands.search.terminal_width", lambda: columns)
    lines = run("search", "name", "--directory", str(tmp_path)).stdout.splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= longest
    assert ("DESCRIPTION" in lines[0]) == (columns != 50)


@pytest.mark.parametrize(
    ("is_terminal", "environment", "is_coloured"),
    [(True, {}, True), (True, {"TERM": "dumb"}, False), (True, {"NO_COLOR": "1"}, False), (False, {}, False)],
)
def test_colour_is_for_terminals(
    is_terminal: bool, environment: dict[str, str], is_coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    assert console.colour_text("up", "green") == ("\x1b[32mup\x1b[0m" if is_coloured else "up")


def test_ages_are_for_people() -> None:
    from specmux_aggregator.console import age

    assert [age(seconds) for seconds in (None, 0.4, 59, 61, 7200, 200000)] == [
        "never", "0s", "59s", "1m", "2h", "2d"
    ]  # fmt: skip
