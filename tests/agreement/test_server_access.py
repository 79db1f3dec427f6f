"""Every way to a server treats redirects, proxies and tokens alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from data.compared import document
from fakes.openapi_server import Reference, Reply, Request
from fakes.openapi_thread import serving_in_thread
from specmux_aggregator.cli import main
from specmux_cache import CacheOptions, SchemaCache
from specmux_cache.errors import RequestError

KEY = "apis/example.com/v1"
BODY = orjson.dumps(document({"type": "object"}))
STATUS = {"version": "1", "ready": True, "backends": {}, "groupVersions": {}, "conflicts": []}
SECRET = "s3cret-token"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in ("KUBECONFIG", "SPECMUX_SERVER", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "token").write_text(SECRET)
    (tmp_path / "v1.json").write_bytes(BODY)


def answer(request: Request) -> Reply:
    if request.path.endswith("/status"):
        return Reply(body=orjson.dumps(STATUS))
    found: Reply = Reference({KEY: BODY})(request)
    return found


def command(*words: str) -> Callable[[str, Path], int]:
    def run(url: str, folder: Path) -> int:
        filled = [word.format(url=url, folder=folder) for word in words]
        return CliRunner().invoke(main, filled, prog_name="specmux").exit_code

    return run


def library(url: str, folder: Path) -> int:
    """The exit code that a command would have."""
    headers = {"Authorization": f"Bearer {SECRET}"}
    try:
        with SchemaCache(url, CacheOptions(directory=None), headers=headers) as cache:
            cache.paths()
    except RequestError:
        return 4
    return 0


TOKEN = ("--token-file", "{folder}/token")
DOORS: dict[str, Callable[[str, Path], int]] = {
    "status": command("status", "{url}", *TOKEN),
    "get": command("get", "--server", "{url}", *TOKEN),
    "check": command("check", "--server", "{url}", *TOKEN, "--fail-on", "never"),
    "search": command("search", "spec", "--server", "{url}", *TOKEN),
    "a document's URL": command("diff", "{folder}/v1.json", f"{{url}}/openapi/v3/{KEY}", *TOKEN),
    "library": library,
}


@pytest.mark.parametrize("door", DOORS)
def test_a_token_is_shown_to_the_server_that_is_named(tmp_path: Path, door: str) -> None:
    with serving_in_thread(answer) as server:
        assert DOORS[door](server.url, tmp_path) == 0
    assert {each.headers.get("authorization") for each in server.server.requests} == {f"Bearer {SECRET}"}


@pytest.mark.parametrize("door", DOORS)
def test_no_door_follows_a_redirect_to_another_server(tmp_path: Path, door: str) -> None:
    with serving_in_thread(answer) as other:

        def away(request: Request) -> Reply:
            return Reply(302, headers=[("Location", f"{other.url}{request.target}")])

        with serving_in_thread(away) as server:
            assert DOORS[door](server.url, tmp_path) == 4
    assert other.server.requests == []


@pytest.mark.parametrize("door", [door for door in DOORS if door != "library"])
def test_commands_take_the_proxy_of_the_environment(
    tmp_path: Path, door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_in_thread(answer) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        DOORS[door]("http://far.example:8080", tmp_path)
    assert proxy.server.requests
    assert all(each.target.startswith("http://far.example:8080/") for each in proxy.server.requests)
