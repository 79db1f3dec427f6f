"""``specmux explain`` comes at once because of what it does not import, ``--offline`` even sooner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from data.explained_documents import bed
from fakes.openapi_server import Reference
from fakes.openapi_thread import serving_in_thread
from specmux_tools.sources import SourceOptions, open_documents

KEY = "apis/garden.example.org/v1"
PACKAGES = {
    *("_sqlite3", "click", "orjson", "sqlite3", "zstandard"),
    *("specmux_aggregator", "specmux_cache", "specmux_converters", "specmux_tools"),
}
"""All that a stored field takes, beside what of the standard library comes with these."""
ABSENT = (
    *("aiohttp", "asyncio", "cbor2", "concurrent", "google", "jinja2", "multiprocessing", "ssl", "yaml"),
    *("diskcache", "email", "http.client", "logging", "subprocess", "urllib.request"),
    *("specmux_aggregator.upstream", "specmux_aggregator.kubernetes.kubeconfig"),
    *("specmux_converters.codecs", "specmux_converters.crd", "specmux_converters.recognise"),
    *("specmux_converters.from_swagger2", "specmux_converters.yaml", "difflib", "secrets"),
)

RUN = """
import atexit, json, sys
first = set(sys.modules)
atexit.register(lambda: print(json.dumps(sorted(set(sys.modules) - first)), file=sys.stderr))
from specmux_aggregator.cli import main
main(sys.argv[1:], prog_name="specmux")
"""


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[list[str]]:
    """Options of a cache that has all documents of a server."""
    with serving_in_thread(Reference({KEY: orjson.dumps(bed(name={"type": "string"}))})) as server:
        with open_documents(SourceOptions(server=server.url, cache_directory=tmp_path)) as source:
            source.resources()
            source.load()
        yield ["--server", server.url, "--cache-directory", str(tmp_path)]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KUBECONFIG": os.devnull}
    return subprocess.run(
        [sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, env=environment, timeout=60
    )


def imported(*arguments: str) -> list[str]:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return modules_of(done)


def modules_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    modules: list[str] = json.loads(done.stderr.splitlines()[-1])  # a warning may stand above it
    return modules


def test_offline_explain_imports_what_it_needs(stored: list[str]) -> None:
    modules = imported("explain", "beds.spec.name", "--offline", *stored)
    below = tuple(f"{each}." for each in ABSENT)
    assert [name for name in modules if name in ABSENT or name.startswith(below)] == []
    foreign = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    assert {name for name in foreign if not name.startswith(("_", "org"))} <= PACKAGES


@pytest.mark.parametrize("command", [("explain", "beds.spec.name"), ("search", "name")])
def test_a_server_is_asked_without_an_event_loop(stored: list[str], command: tuple[str, ...]) -> None:
    modules = imported(*command, *stored)
    # A root of less than two seconds ago is not asked for again; explain asks for discovery in any case.
    assert command[0] == "search" or "specmux_cache.http.transport" in modules
    below = tuple(f"{each}." for each in ABSENT)
    assert [name for name in modules if name in ABSENT or name.startswith(below)] == []


@pytest.mark.parametrize("command", ["status", "conformance"])
def test_a_page_is_asked_for_without_an_event_loop(stored: list[str], command: str) -> None:
    modules = modules_of(run(command, stored[1], "-o", "json"))
    assert "specmux_tools.sources.remote.fetching" in modules
    assert {"aiohttp", "asyncio", "ssl"}.isdisjoint(modules)


def test_a_search_in_a_kept_index_reads_no_document(stored: list[str]) -> None:
    reader = "specmux_tools.search_index.document_reader"
    assert [reader in imported("search", "name", *stored) for _ in range(2)] == [True, False]


def test_help_of_settings_takes_no_event_loop_and_no_yaml() -> None:
    assert {"asyncio", "difflib", "logging", "ssl", "yaml"}.isdisjoint(imported("serve", "--help"))


def test_a_token_takes_no_event_loop(stored: list[str], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("token")
    modules = imported("explain", "beds.spec.name", *stored, "--token-file", str(tmp_path / "token"))
    assert {"aiohttp", "asyncio", "yaml"}.isdisjoint(modules)


def test_a_proxy_takes_no_event_loop(stored: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    address = stored[1].replace("127.0.0.1", "server.invalid")
    done = run("explain", "beds.spec.name", "--server", address, *stored[2:])
    assert done.returncode == 4
    assert "by the proxy http://127.0.0.1:9: connection refused" in done.stderr
    assert {"aiohttp", "asyncio", "yaml"}.isdisjoint(modules_of(done))
