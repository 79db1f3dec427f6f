"""The options that every command takes to name its source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from specmux_tools.sources import SourceOptions, group_versions_option, source_options
from specmux_tools.sources.open_source import is_path
from specmux_tools.sources.options import is_url


@click.command()
@click.argument("word")
@source_options
def shown(word: str, source: SourceOptions) -> None:
    click.echo(f"{word} {source}")


def run(*arguments: Any, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(shown, [str(each) for each in arguments])


def test_nothing_given_means_the_current_context() -> None:
    assert run("x").output == f"x {SourceOptions()}\n"


def test_every_option_arrives(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.touch()
    result = run(
        "x", "--server", "https://a", "--token-file", file, "--ca-file", file, "--client-certificate", file,
        "--client-key", file, "--offline", "--insecure-skip-tls-verify", "--cache-directory", tmp_path,
    )  # fmt: skip
    expected = SourceOptions(
        server="https://a",
        token_file=file,
        ca_file=file,
        client_certificate=file,
        client_key=file,
        offline=True,
        insecure_skip_tls_verify=True,
        cache_directory=tmp_path,
    )
    assert result.output == f"x {expected}\n"


def test_the_server_may_stand_in_the_environment() -> None:
    assert "server='http://b'" in run("x", SPECMUX_SERVER="http://b").output


@pytest.mark.parametrize("arguments", [("--directory", "."), ("--file", __file__), ("--context", "a")])
def test_what_the_command_line_says_goes_before_the_environment(arguments: tuple[str, ...]) -> None:
    result = run("x", *arguments, SPECMUX_SERVER="http://b")
    assert (result.exit_code, "server=None" in result.output) == (0, True), result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--server", "http://a", "--context", "b"), "--server and --kubeconfig or --context name different"),
        (("--server", "http://a", "--directory", "."), "--server and --directory or --file name different"),
        (("--directory", ".", "--offline"), "--offline is for servers"),
        (("--client-key", __file__, "--server", "https://a"), "--client-key needs --client-certificate"),
    ],
)
def test_what_contradicts_itself_is_a_usage_error(arguments: tuple[str, ...], message: str) -> None:
    result = run("x", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize("option", ["--directory", "--file"])
def test_a_source_that_is_not_there_is_an_unreadable_input(option: str) -> None:
    result = run("x", option, "/no/such")
    assert (result.exit_code, "does not exist" in result.output) == (3, True)


def test_one_word_names_a_source_with_the_same_credentials(tmp_path: Path) -> None:
    options = SourceOptions(token_file=tmp_path / "token", server="http://other")
    (tmp_path / "a.json").touch()
    token = {"token_file": tmp_path / "token"}
    assert options.at("https://a") == SourceOptions(server="https://a", **token)
    assert options.at("context:prod") == SourceOptions(context="prod", **token)
    assert options.at(str(tmp_path)) == SourceOptions(directories=(tmp_path,), **token)
    assert options.at(str(tmp_path / "a.json")) == SourceOptions(files=(tmp_path / "a.json",), **token)
    assert options.at("-") == SourceOptions(files=(Path("-"),), **token)


def test_importing_it_brings_neither_http_nor_converters() -> None:
    code = "import sys, specmux_tools.sources; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"aiohttp", "asyncio", "yaml", "orjson"} & set(modules.split())
    converters = {name for name in modules.split() if name.startswith("specmux_converters")}
    assert converters <= {
        "specmux_converters",
        "specmux_converters.lazy",
        "specmux_converters.lazy.dataclasses",
        "specmux_converters.lazy.patterns",
    }


def test_group_versions_are_named_as_discovery_has_them_or_as_manifests_do() -> None:
    @click.command()
    @group_versions_option("Look at this group-version")
    def looked(group_versions: tuple[str, ...]) -> None:
        click.echo(" ".join(group_versions))

    words = ["-g", "apps/v1", "-g", "v1", "-g", "apis/batch/v1", "--group-version", "api/v1"]
    assert CliRunner().invoke(looked, words).output == "apis/apps/v1 api/v1 apis/batch/v1 api/v1\n"
    assert "Look at this group-version alone" in CliRunner().invoke(looked, ["--help"]).output


@pytest.mark.parametrize("word", ["http://a", "HTTPS://A:6443/b"])
def test_a_url_is_one_in_any_case_wherever_a_word_names_a_source(word: str) -> None:
    assert is_url(word)
    assert not is_path(word)
    assert SourceOptions().at(word).server == word
