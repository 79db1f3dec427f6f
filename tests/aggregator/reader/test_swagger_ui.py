"""Swagger UI: off by default, its files pinned, behind the same guard, and built from a pinned archive."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import importlib.util
import io
import re
import tarfile
import tomllib
from collections.abc import Callable, Coroutine, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import orjson
import pytest

from data.explained_documents import bed
from running.service import Client, directory, service
from specmux_aggregator.config.settings import AuthSettings, PageSettings
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.reader import swagger_assets as swagger_ui
from specmux_aggregator.reader.page_answers import POLICY
from specmux_aggregator.reader.swagger_assets import PINNED, RELEASE, SwaggerUiUnusable, swagger_assets
from specmux_aggregator.reader.swagger_ui import SWAGGER_POLICY

EXTRA = Path(__file__).resolve().parents[3] / "aggregator" / "swagger-ui"
PAGE = "/openapi/ui/swagger/"
KEY = "apis/garden.example.org/v1"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files in the place of the extra's, pinned as they are."""
    folder = tmp_path / "installed"
    folder.mkdir()
    for name in PINNED:
        (folder / name).write_bytes(f"/* {name} */".encode() * 200)
    pinned = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in PINNED}
    monkeypatch.setattr(swagger_ui, "PINNED", pinned)
    monkeypatch.setattr(swagger_ui, "_installed", lambda: folder)
    return folder


def run(folder: Path, scenario: Callable[[Client], Coroutine[Any, Any, None]], **settings: Any) -> None:
    path = folder / "documents" / f"{KEY}.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(orjson.dumps(bed(name={"type": "string"})))

    async def whole() -> None:
        async with service(directory("garden", folder / "documents"), **settings) as client:
            await scenario(client)

    asyncio.run(whole())


def test_it_is_off_by_default(tmp_path: Path, installed: Path) -> None:
    async def scenario(client: Client) -> None:
        assert (await client.get(PAGE))[0] == 404

    run(tmp_path, scenario)


def test_page_and_files_are_served_under_a_strict_policy(tmp_path: Path, installed: Path) -> None:
    async def scenario(client: Client) -> None:
        status, headers, body = await client.get(PAGE)
        assert (status, headers["Content-Security-Policy"]) == (200, SWAGGER_POLICY)
        more = set(SWAGGER_POLICY.replace(";", "").split()) - set(POLICY.replace(";", "").split())
        assert {word.partition("-")[0] for word in more} == {"data:", "'unsafe", "'sha256"}
        assert not {"'unsafe-inline'", "'unsafe-eval'"} & more
        assert not re.search(rb"<script(?![^>]* src=)|<style|javascript:| on\w+=", body)
        assert (await client.get(PAGE, If_None_Match=headers["ETag"]))[0] == 304
        names = re.findall(rb'(?:src|href)="(assets/[^"]+)"', body)
        assert len(names) == 5
        for name in names:
            for coding in ("identity", "gzip", "zstd"):
                status, headers, body = await client.get(PAGE + name.decode(), Accept_Encoding=coding)
                assert (status, headers.get("Content-Encoding", "identity")) == (200, coding)
                assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
                assert headers["X-Content-Type-Options"] == "nosniff"
        status, headers, _ = await client.get(PAGE.removesuffix("/"))
        assert (status, headers["Location"]) == (302, "swagger/")
        assert (await client.get(f"{PAGE}assets/page.css"))[0] == 404
        assert (await client.get(PAGE, method="POST"))[0] == 405
        # The page that is ours keeps its own policy.
        assert (await client.get("/openapi/ui/nothing"))[1]["Content-Security-Policy"] == POLICY

    run(tmp_path, scenario, ui=PageSettings(swagger=True))


def test_it_is_behind_the_guard(tmp_path: Path, installed: Path) -> None:
    (tmp_path / "tokens").write_text("secret,somebody\n")
    auth = AuthSettings(mode="token-file", token_file=tmp_path / "tokens")

    async def scenario(client: Client) -> None:
        for path in (PAGE, f"{PAGE}assets/swagger-start.js"):
            assert (await client.get(path))[0] == 401
        status, headers, _ = await client.get(PAGE, Authorization="Bearer secret")
        assert (status, headers["Cache-Control"]) == (200, "private, no-cache")

    run(tmp_path, scenario, ui=PageSettings(swagger=True), auth=auth)


def test_other_file_than_the_pinned_one_is_no_file(installed: Path) -> None:
    assert set(swagger_assets()) == {*PINNED, "swagger-start.css", "swagger-start.js"}
    with (installed / "swagger-ui.css").open("ab") as file:
        file.write(b" ")
    with pytest.raises(SwaggerUiUnusable, match=r"swagger-ui\.css .*pinned"):
        swagger_assets()
    (installed / "swagger-ui.css").unlink()
    with pytest.raises(SwaggerUiUnusable, match=r"no swagger-ui\.css"):
        swagger_assets()


def test_service_does_not_start_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(swagger_ui, "files", missing)

    async def scenario(client: Client) -> None:
        raise AssertionError("it started")

    with pytest.raises(InvalidConfig, match=r"specmux\[swagger-ui\]"):
        run(tmp_path, scenario, ui=PageSettings(swagger=True))


def test_one_release_is_named_everywhere() -> None:
    extra = tomllib.loads((EXTRA / "pyproject.toml").read_text())["project"]
    project = tomllib.loads((EXTRA.parents[1] / "pyproject.toml").read_text())["project"]
    assert extra["version"] == RELEASE
    assert project["optional-dependencies"]["swagger-ui"] == [f"{extra['name']}=={RELEASE}"]
    assert set(hook().INTEGRITY) == {RELEASE}
    assert set(PINNED) < set(hook().FILES)


def test_installed_extra_is_the_pinned_one() -> None:
    pytest.importorskip("specmux_swagger_ui", reason="make ui brings it")
    assert set(swagger_assets()) == {*PINNED, "swagger-start.css", "swagger-start.js"}


def hook() -> Any:
    pytest.importorskip("hatchling", reason="hatchling builds the wheel; it is not installed for tests")
    spec = importlib.util.spec_from_file_location("swagger_ui_build", EXTRA / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def registry() -> Iterator[tuple[str, dict[str, bytes]]]:
    """Its URL, and what it has by path."""
    held: dict[str, bytes] = {}

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = held.get(self.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", held
        server.shutdown()


def test_build_takes_the_pinned_archive_alone(registry: tuple[str, dict[str, bytes]]) -> None:
    url, held = registry
    building = hook()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as files:
        for name in (*building.FILES, "index.html"):
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(name)
            files.addfile(member, io.BytesIO(name.encode()))
    held[f"/swagger-ui-dist/-/swagger-ui-dist-{RELEASE}.tgz"] = packed.getvalue()
    with pytest.raises(ValueError, match="not the archive that is pinned"):
        building.fetched(url, RELEASE)
    building.INTEGRITY[RELEASE] = base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()
    taken = building.contents(building.fetched(url, RELEASE))
    assert taken == {name: name.encode() for name in building.FILES}
