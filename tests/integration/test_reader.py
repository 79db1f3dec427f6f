"""Explain, search and the page over HTTP: answers, conditions, limits, and a reader that fails."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import orjson
import pytest

from data.explained_documents import bed
from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, serving
from running.service import Client, backend, directory, service
from specmux_aggregator.reader import reader_client
from specmux_aggregator.reader.page_answers import POLICY
from specmux_aggregator.reader.process import Reader, ReaderBusy, ReaderFailed, ReaderFault
from specmux_aggregator.reader.requests import WHOLE_SHARE
from specmux_tools.reader.state import ReaderState

KIND_PAGE = "/openapi/ui/kind/apis/garden.example.org/v1/Bed"
KEY = "apis/garden.example.org/v1"
NAME = {
    "type": "string",
    "description": "What it is <b>called</b>: https://example.org/?a=1&b=2.",
    "default": "x",
}


def write(folder: Path, **spec: Any) -> None:
    path = folder / f"{KEY}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(bed(**spec)))


@asynccontextmanager
async def garden(folder: Path) -> AsyncIterator[Client]:
    write(folder, name=NAME)
    async with service(directory("garden", folder)) as client:
        await client.ready()
        # What these tests are about is not how long a request waits on a machine that is busy.
        client.app._reading._reader._request_seconds = DEADLINE
        assert (await client.get("/openapi/ui/"))[0] == 200
        yield client


def run(folder: Path, scenario: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        async with garden(folder) as client:
            await scenario(client)

    asyncio.run(whole())


def test_field_is_explained_in_every_form(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        base = f"/openapi/explain/{KEY}/Bed"
        status, headers, body = await client.get(f"{base}?path=spec.name")
        assert (status, headers["Content-Type"], headers["Cache-Control"]) == (
            200,
            "application/json",
            "no-cache",
        )
        told = orjson.loads(body)
        assert (told["path"], told["type"], told["default"]) == ("spec.name", "string", "x")
        whole = orjson.loads((await client.get(f"{base}?recursive"))[2])
        assert whole["fields"][-1]["fields"][0]["name"] == "name"
        status, headers, body = await client.get(f"{base}?output=text&path=spec")
        assert (headers["Content-Type"], b'default: "x"' in body) == ("text/plain; charset=utf-8", True)
        _, _, plain = await client.get(f"{base}?output=plaintext&path=spec")
        assert b"default" not in plain
        assert (await client.get(f"{base}?output=skeleton"))[2].startswith(b"apiVersion: garden")
        # Any name of the kind will do.
        assert (await client.get(f"/openapi/explain/{KEY}/beds"))[0] == 200

    run(tmp_path, scenario)


def test_answer_is_not_made_twice_for_who_has_it(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        for target in (
            f"/openapi/explain/{KEY}/Bed",
            "/openapi/search?q=called",
            f"/openapi/ui/kind/{KEY}/Bed",
        ):
            _, headers, _ = await client.get(target)
            status, again, body = await client.get(target, If_None_Match=headers["ETag"])
            assert (status, body, again["ETag"]) == (304, b"", headers["ETag"])
            _, gzipped, _ = await client.get(target, Accept_Encoding="gzip")
            assert gzipped["Content-Encoding"] == "gzip"
            assert gzipped["ETag"] != headers["ETag"]
            status, _, body = await client.get(target, method="HEAD")
            assert (status, body) == (200, b"")
            assert (await client.get(target, method="POST"))[0] == 405

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (f"/openapi/explain/{KEY}/Bad", 404),
        (f"/openapi/explain/{KEY}/Bed?path=spec.nam", 404),
        (f"/openapi/explain/{KEY}/Bed?path=spec[", 400),
        (f"/openapi/explain/{KEY}/Bed?path=" + "a." * 65, 400),
        (f"/openapi/explain/{KEY}/Bed?output=html", 400),
        (f"/openapi/explain/{KEY}/Bed?recursive=perhaps", 400),
        (f"/openapi/explain/{KEY}/Bed?depth=65", 400),
        ("/openapi/explain/apis/rocks/v1/Rock", 404),
        ("/openapi/explain", 404),
        ("/openapi/search", 400),
        ("/openapi/search?q=" + "a" * 201, 400),
        ("/openapi/search?q=b+c+d+e+f+g+h+j+k", 400),
        ("/openapi/search?q=a&limit=201", 400),
        ("/openapi/search?q=a&offset=1001", 400),
        ("/openapi/search/more?q=a", 404),
        ("/openapi/ui/kind/apis/rocks/v1/Rock", 404),
        ("/openapi/ui/nothing", 404),
        ("/openapi/ui/assets/page.css", 404),
    ],
)
def test_what_cannot_be_answered_is_said(tmp_path: Path, target: str, code: int) -> None:
    async def scenario(client: Client) -> None:
        status, headers, body = await client.get(target)
        assert status == code, body
        assert headers["Cache-Control"] == "no-store"

    run(tmp_path, scenario)


def test_changed_document_is_searched_anew(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        found = orjson.loads((await client.get("/openapi/search?q=name"))[2])
        assert [row["path"] for row in found["rows"]] == ["spec.name"]
        assert found["incomplete"] == []
        before = client.app.publisher.current.generation
        write(tmp_path, colour=NAME)
        await client.until(lambda: client.app.publisher.current.generation > before)
        assert orjson.loads((await client.get("/openapi/search?q=name"))[2])["rows"] == []
        assert orjson.loads((await client.get("/openapi/search?q=colour"))[2])["total"] == 1

    run(tmp_path, scenario)


def test_pages_escape_what_they_show_and_load_nothing_foreign(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        for page in ("", "search?q=called", "search", "status", f"kind/{KEY}/Bed"):
            status, headers, body = await client.get(f"/openapi/ui/{page}")
            assert (status, headers["Content-Security-Policy"]) == (200, POLICY), page
            assert b"<b>called" not in body
        assert b'href="https://example.org/?a=1&amp;b=2"' in body
        assert b'<div id="spec.name">' in body
        for path in ("/", "/openapi/ui"):
            status, headers, _ = await client.get(path, Accept="text/html")
            assert (status, headers["Location"]) == (302, "openapi/ui/" if path == "/" else "ui/")
        assert (await client.get("/status", Accept="text/html"))[0] == 302
        _, headers, body = await client.get("/openapi/ui/")
        asset = body.decode().partition('href="./assets/page')[2].partition('"')[0]
        status, headers, _ = await client.get(f"/openapi/ui/assets/page{asset}")
        assert (status, headers["Cache-Control"]) == (200, "public, max-age=31536000, immutable")

    run(tmp_path, scenario)


def test_killed_reader_is_started_anew(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        assert (await client.get("/openapi/search?q=name"))[0] == 200
        reader = client.app._reading._reader
        os.kill(await reader.ask(pid), signal.SIGKILL)
        codes: list[int] = []
        # On a machine that is busy the next one takes longer to start than a request waits.
        async with asyncio.timeout(DEADLINE):
            while 200 not in codes:
                codes.append((await client.get("/openapi/search?q=called"))[0])
        assert set(codes) <= {200, 503}

    run(tmp_path, scenario)


def pid(state: ReaderState) -> int:
    return os.getpid()


def hang(state: ReaderState) -> None:
    while True:
        pass


def eat(state: ReaderState) -> int:
    return len(bytearray(1 << 30))


@pytest.mark.long
def test_hanging_and_greedy_jobs_end_the_process_and_nothing_else(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        hasty, patient = Reader(request_seconds=4.0, job_cpu_seconds=1.0), Reader(request_seconds=60.0)
        try:
            processes = [await process_of(hasty), await process_of(patient)]
            lags: list[float] = []
            watching = asyncio.create_task(lag(lags))
            with pytest.raises(ReaderFailed, match=r"too long|died"):
                await hasty.ask(hang)
            with pytest.raises(ReaderFailed, match="MemoryError"):
                await patient.ask(eat)
            processes += [await process_of(hasty), await process_of(patient)]
            assert len(set(processes)) == 4
            watching.cancel()
            assert (await client.get("/livez"))[0] == 200
            assert sorted(lags)[int(len(lags) * 0.5)] < 0.01
        finally:
            await hasty.close()
            await patient.close()

    run(tmp_path, scenario)


def sulk(state: ReaderState) -> None:
    raise UnicodeEncodeError("utf-8", "a secret", 0, 1, "surrogates not allowed")


def slow(state: ReaderState) -> int:
    time.sleep(2)
    state.version = "loaded"
    return os.getpid()


def version(state: ReaderState) -> str:
    return state.version


async def test_exception_of_a_job_is_said_and_ends_no_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reader = Reader(request_seconds=60.0)
    try:
        process = await process_of(reader)
        with pytest.raises(ReaderFault, match=r"UnicodeEncodeError at test_reader.py:\d+"):
            await reader.ask(sulk)
        assert await process_of(reader) == process
    finally:
        await reader.close()
    assert "UnicodeEncodeError at test_reader.py" in caplog.text
    assert "secret" not in caplog.text


async def test_clients_that_leave_end_nothing_that_is_under_way() -> None:
    reader = Reader(request_seconds=60.0)
    try:
        process = await process_of(reader)
        asked = [asyncio.create_task(reader.ask(slow)) for _ in range(10)]
        while reader._working is None:
            await asyncio.sleep(0.01)
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        assert await reader.ask(version) == "loaded"  # the one that was under way
        assert await process_of(reader) == process
        assert not reader._asked
    finally:
        await reader.close()


async def test_time_of_a_client_is_not_the_time_of_its_job() -> None:
    reader = Reader(request_seconds=0.5)
    try:
        process = await process_of(reader)
        with pytest.raises(ReaderFailed, match="too long"):
            await reader.ask(slow)
        assert await process_of(reader) == process
    finally:
        await reader.close()


async def test_first_visitor_finds_a_reader_that_has_what_costs_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_client, "_ATTEMPTS", 1000)  # a few are too few on a machine that is busy
    write(tmp_path, name=NAME)
    async with (
        serving(FakeAPIServer({"apis/apps/v1": orjson.dumps(bed())})) as apiserver,
        service(directory("garden", tmp_path), backend("cluster", apiserver.url)) as client,
    ):
        await client.ready()
        reading = client.app._reading

        async def until(wanted: set[str]) -> None:
            async with asyncio.timeout(DEADLINE):
                while True:
                    await asyncio.sleep(0.1)
                    with contextlib.suppress(ReaderFailed):  # too slow an answer, on a machine that is busy
                        if (
                            reading._reader._starting is not None
                            and await reading._reader.ask(held) == wanted
                        ):
                            return

        await until({KEY})
        assert apiserver.count("/openapi/v3/") == 0
        # Whoever comes is shown the rest, too.
        assert (await client.get("/openapi/ui/"))[0] == 200
        await until({KEY, "apis/apps/v1"})
        assert apiserver.count("/openapi/v3/apis/apps/v1") == 1


def held(state: ReaderState) -> set[str]:
    return set(state.index.documents)


async def test_error_is_in_the_frame_and_leads_on(tmp_path: Path) -> None:
    async with garden(tmp_path) as client:
        for page, link in (
            (f"kind/{KEY}/Bet", f"kind/{KEY}/Bed"),
            ("kind/apis/garden.example.org/v2/Bed", f"group-version/{KEY}"),
            (f"compare/{KEY}/Bed?with=apis/garden.example.org/v2", f"group-version/{KEY}"),
        ):
            status, headers, body = await client.get(f"/openapi/ui/{page}")
            assert (status, headers["Content-Security-Policy"]) == (404, POLICY)
            assert f'/{link}">' in body.decode(), page
            assert b'role="search"' in body


async def test_links_of_the_page_lead_somewhere(tmp_path: Path) -> None:
    write(tmp_path, name=NAME, soil={"$ref": "#/components/schemas/Soil"})
    async with service(directory("garden", tmp_path)) as client:
        await client.says_ready()
        waiting, seen = ["/openapi/ui/"], set[str]()
        while waiting:
            page = waiting.pop()
            for _ in range(10):
                status, headers, body = await client.get(page)
                if status != 503:
                    break
            assert status in (200, 302), page
            seen.add(page)
            if headers.get("Content-Type", "").startswith("text/html"):
                for link in re.findall(r'href="([^"#?]*)', body.decode()):
                    target = urljoin(page, unescape(link))
                    if target.startswith("/") and target not in seen:
                        waiting.append(target)
        assert {f"/openapi/v3/{KEY}", f"/openapi/ui/kind/{KEY}/Bed", "/openapi/ui/status"} < seen
        assert {"/schemas/garden.example.org/bed_v1.json", f"/openapi/ui/type/{KEY}/Soil"} < seen


def test_page_that_was_rendered_is_not_asked_of_the_reader_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(client: Client) -> None:
        async def kept() -> tuple[str, bytes]:
            """Its ETag and body, once every document is in the index."""
            async with asyncio.timeout(DEADLINE):
                while (answer := await client.get(KIND_PAGE))[1].get("Cache-Control") != "no-cache":
                    await asyncio.sleep(0.01)
            return answer[1]["ETag"], answer[2]

        first = await kept()

        async def gone(*_: Any) -> None:
            raise ReaderFailed("nobody is there")

        with monkeypatch.context() as patched:
            patched.setattr(Reader, "ask", gone)
            status, headers, body = await client.get(KIND_PAGE)
            assert (status, (headers["ETag"], body)) == (200, first)
            before = (await client.get("/openapi/v3"))[2]
            write(tmp_path, colour={"type": "string"})
            async with asyncio.timeout(DEADLINE):
                while (await client.get("/openapi/v3"))[2] == before:
                    await asyncio.sleep(0.01)
            assert (await client.get(KIND_PAGE))[0] == 503
        assert b"colour" in (await kept())[1]

    run(tmp_path, scenario)


async def process_of(reader: Reader) -> int:
    """On a machine that is busy the process takes longer to start than a request waits."""
    async with asyncio.timeout(DEADLINE):
        while True:
            with contextlib.suppress(ReaderFailed):
                return await reader.ask(pid)


async def lag(measured: list[float]) -> None:
    while True:
        before = time.monotonic()
        await asyncio.sleep(0.005)
        measured.append(time.monotonic() - before - 0.005)


async def test_too_many_at_once_are_refused() -> None:
    reader = Reader(request_seconds=60.0)
    try:
        jobs = [asyncio.create_task(reader.ask(pid)) for _ in range(40)]
        ended = await asyncio.gather(*jobs, return_exceptions=True)
        assert sum(isinstance(each, ReaderBusy) for each in ended) == 24
        assert sum(isinstance(each, int) for each in ended) == 16
    finally:
        await reader.close()


async def test_reader_that_nobody_asks_ends() -> None:
    reader = Reader(idle_seconds=0.1, request_seconds=60.0)
    try:
        first = await reader.ask(pid)
        await asyncio.sleep(0.4)
        assert await reader.ask(pid) != first
    finally:
        await reader.close()


async def test_document_beyond_its_share_costs_no_other_backend_an_answer(tmp_path: Path) -> None:
    odd = "apis/odd.example.org/v1"
    many = {"type": "string", "enum": ["a"] * (WHOLE_SHARE.max_values + 1)}
    write(tmp_path / "good", name=NAME)
    write(tmp_path / "bad", name=many)
    (tmp_path / "bad" / "apis" / "garden.example.org").rename(tmp_path / "bad" / "apis" / "odd.example.org")
    for path in (tmp_path / "bad").rglob("*.json"):
        path.write_bytes(path.read_bytes().replace(b"garden.example.org", b"odd.example.org"))
    sources = directory("good", tmp_path / "good"), directory("bad", tmp_path / "bad")
    async with service(*sources) as client:
        await client.ready()
        client.app._reading._reader._request_seconds = DEADLINE
        asked = (
            f"/openapi/explain/{odd}/Bed",
            f"/openapi/ui/kind/{odd}/Bed",
            "/schemas/odd.example.org/bed_v1.json",
        )
        refused = [asyncio.create_task(client.get(f"{target}?x={n}")) for n in range(5) for target in asked]
        for target in (
            f"/openapi/explain/{KEY}/Bed",
            KIND_PAGE,
            "/openapi/ui/",
            "/schemas/index.json",
            "/schemas/garden.example.org/bed_v1.json",
        ):
            assert (await client.get(target))[0] == 200, target
        assert {status for status, _, _ in await asyncio.gather(*refused)} <= {429, 503}
        status, _, body = await client.get("/openapi/search?q=called")
        found = orjson.loads(body)
        assert (status, found["incomplete"], found["total"]) == (200, [odd], 1)
        assert orjson.loads((await client.get("/schemas/index.json"))[2])["absent"] == [odd]
        report = orjson.loads((await client.get("/status"))[2])["reader"]["refused"]
        assert [*report] == [odd]
        assert "values" in report[odd]
        status, _, body = await client.get(f"/openapi/explain/{odd}/Bed")
        assert (status, b"values" in body) == (503, True)
        assert (await client.get(f"/openapi/v3/{odd}"))[0] == 200
