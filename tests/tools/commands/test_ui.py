"""``specmux ui``: the page on loopback, under this machine's names alone."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import aiohttp
import orjson
import pytest
from click.testing import CliRunner

from data.explained_documents import bed
from deadline import DEADLINE
from fakes.openapi_server import Reference
from fakes.openapi_thread import serving_in_thread
from specmux_aggregator.cli import main
from specmux_tools.commands.ui import _settings
from specmux_tools.sources import SourceOptions

KEY = "apis/garden.example.org/v1"
HOSTS = {"localhost:1": 404, "127.0.0.1": 404, "evil.example:1": 403, "": 403, "127.0.0.1.nip.io": 403}
"""And what is answered to who asks for what is not there."""


async def shown(*source: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "specmux_aggregator.cli", "ui", *source, "--no-browser",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE):
            line = (await process.stdout.readline()).decode().strip()
            url = line.removeprefix("the web UI is at ")
            assert url.startswith("http://127.0.0.1:")
            async with aiohttp.ClientSession() as session:
                for host, code in HOSTS.items():
                    async with session.get(f"{url}assets/none", headers={"Host": host}) as answer:
                        assert answer.status == code, host
    finally:
        process.terminate()
        await process.communicate()
        assert process.returncode == 0


def test_page_is_shown_to_who_asks_for_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "apis" / "garden.example.org" / "v1.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(orjson.dumps(bed(name={"type": "string"})))
    asyncio.run(shown("--directory", str(tmp_path)))


@pytest.mark.parametrize("source", [(), ("--release", "1.36")])
def test_page_without_a_cluster_has_kubernetes_own_kinds(
    source: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    asyncio.run(shown(*source))


def test_page_of_a_server_has_its_kinds(tmp_path: Path) -> None:
    """With the credentials that are named."""
    (tmp_path / "token").write_text("of-the-user")
    document = orjson.dumps(bed(name={"type": "string"}))

    async def scenario(url: str) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "specmux_aggregator.cli", "ui", "--no-browser",
            "--server", url, "--token-file", str(tmp_path / "token"),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            async with asyncio.timeout(DEADLINE), aiohttp.ClientSession() as session:
                page = (await process.stdout.readline()).decode().strip().removeprefix("the web UI is at ")
                while True:
                    async with session.get(f"{page}kind/{KEY}/Bed") as answer:
                        if answer.status == 200:
                            break
                    await asyncio.sleep(0.1)
        finally:
            process.terminate()
            await process.communicate()
            assert process.returncode == 0

    with serving_in_thread(Reference({KEY: document})) as server:
        asyncio.run(scenario(server.url))
        shown = {request.headers.get("authorization") for request in server.server.requests}
    assert shown == {"Bearer of-the-user"}


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (("--directory", ".", "--context", "a"), "different sources", 2),
        (("--directory", ".", "--server", "http://127.0.0.1:1"), "different sources", 2),
        (("--server", "ftp://127.0.0.1"), "http://", 2),
        (("--kubeconfig", "nothing-here"), "nothing-here: No such file", 3),
    ],
)
def test_what_cannot_be_shown_is_said(
    arguments: tuple[str, ...], message: str, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    done = CliRunner().invoke(main, ["ui", *arguments])
    assert (done.exit_code, message in done.stderr) == (code, True), done.stderr


def test_files_of_a_kubeconfig_are_merged_as_for_every_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    second = tmp_path / "second"
    second.write_text(
        "current-context: there\n"
        "contexts: [{name: there, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
    )
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'absent'}:{second}")
    settings = _settings(SourceOptions(), 0)
    assert (settings.kubernetes.kubeconfig, settings.kubernetes.context) == (None, "there")
