"""Faults inside the service: dying workers, hardly any memory, reloads in a row, clients that leave."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import os
import signal
import time
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from blockbuster import blockbuster_ctx

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document, hash_of, serving, swagger
from running.process import specmux, write_documents
from running.service import Client, backend, directory, service
from specmux_aggregator.config.settings import MemorySettings, Settings
from specmux_aggregator.documents import repository as documents
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.workers.documents import BuildMemo
from specmux_aggregator.workers.worker import Worker
from specmux_converters.document import Limits
from specmux_converters.media_types import CBOR, JSON, PROTOBUF

APPS, BATCH, OTHER = "apis/apps/v1", "apis/batch/v1", "apis/other/v1"
LARGE = "x" * 300_000
TYPES = (JSON, CBOR, PROTOBUF)
CODINGS = ("identity", "gzip", "zstd")


def worker_pid(worker: Worker) -> int:
    assert worker._process is not None
    return worker._process.pid


async def assert_no_500(client: Client) -> None:
    metrics = (await client.get("/metrics"))[2].decode()
    assert 'code="500"' not in metrics


async def test_worker_that_dies_costs_no_request_and_nothing_later() -> None:
    origin = FakeAPIServer({key: document(key) for key in (APPS, BATCH, OTHER)})
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        paths = await client.paths()
        assert (await client.get(paths[APPS], Accept=CBOR))[0] == 200
        encoder = client.app.published.workers.encoder
        os.kill(worker_pid(encoder), signal.SIGKILL)
        assert encoder._process is not None
        await client.until(encoder._process._jobs.poll, "it is dead")
        assert (await client.get(paths[BATCH], Accept=CBOR))[0] == 200
        # While it works, a request may meet its death: a 503, and the next one is served.
        stop, status = worker_pid(client.app.published.workers.encoder), 0
        running = asyncio.create_task(client.get(paths[OTHER], Accept=PROTOBUF))
        await asyncio.sleep(0)
        os.kill(stop, signal.SIGKILL)
        status, headers, _ = await running
        assert status in (200, 503)
        assert status == 200 or int(headers["Retry-After"]) >= 1
        assert (await client.get(paths[OTHER], Accept=PROTOBUF))[0] == 200
        await assert_no_500(client)


async def test_workers_are_up_before_the_first_client_wants_an_encoding() -> None:
    async with service() as client:
        app = client.app
        pools = [
            await until_started(client, worker)
            for worker in (app.published.workers.builder, app.published.workers.encoder)
        ]
        assert len(set(pools)) == 2


async def until_started(client: Client, worker: Worker) -> int:
    await client.until(lambda: bool(worker._process and worker._process.started.done()), "its process is up")
    return worker_pid(worker)


async def test_encoding_that_takes_too_long_is_not_tried_again_for_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    origin = FakeAPIServer({key: document(key) for key in (APPS, BATCH)})
    now = 100.0
    monkeypatch.setattr(documents, "_now", lambda: now)
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        paths = await client.paths()
        encoder = client.app.published.workers.encoder
        killed = await until_started(client, encoder)
        encoder._timeout = 0.2
        with monkeypatch.context() as patched:
            patched.setattr(documents, "encode", stuck)
            status, headers, _ = await client.get(paths[APPS], Accept=PROTOBUF)
        assert status == 503
        assert headers["Retry-After"] == "2"
        encoder._timeout = 60.0
        assert (await client.get(paths[BATCH], Accept=PROTOBUF))[0] == 200
        replaced = worker_pid(encoder)
        assert replaced != killed
        # Others' forms, and the document's own in other media types, are none of it.
        assert (await client.get(paths[APPS], Accept=PROTOBUF))[0] == 503
        assert (await client.get(paths[APPS], Accept=CBOR))[0] == 200
        assert (await client.get(paths[APPS], Accept=JSON))[2] == document(APPS)
        assert worker_pid(encoder) == replaced
        assert caplog.text.count("not tried again for 2 s") == 1
        now += 2.0
        assert (await client.get(paths[APPS], Accept=PROTOBUF))[0] == 200
        await assert_no_500(client)


def stuck(memo: BuildMemo, body: bytes, coding: Coding, *, media_type: str, limits: Limits) -> None:
    """In the worker: an encoding that does not end."""
    time.sleep(600)


async def test_document_without_a_protobuf_form_is_406_for_protobuf_alone() -> None:
    odd = orjson.dumps({"openapi": "3.0.0", "info": {"title": {"no": "text"}, "version": "1"}, "paths": {}})

    origin = FakeAPIServer({APPS: odd, BATCH: document(BATCH)})
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        paths = await client.paths()
        for _ in range(2):
            status, _, body = await client.get(paths[APPS], Accept=PROTOBUF)
            assert status == 406
            assert "protobuf" not in orjson.loads(body)["message"]
            preferred = f"{PROTOBUF}, {JSON};q=0.5"
            assert (await client.get(paths[APPS], Accept=preferred))[2] == odd
            assert (await client.get(paths[APPS], Accept=CBOR))[0] == 200
            assert (await client.get(paths[BATCH], Accept=PROTOBUF))[0] == 200
        origin.documents = {APPS: document(APPS), BATCH: document(BATCH)}
        publisher = client.app.publisher
        await client.until(lambda: publisher.current.entries[APPS].offer.hash == hash_of(document(APPS)))  # type: ignore[index]
        assert (await client.get((await client.paths())[APPS], Accept=PROTOBUF))[0] == 200


async def test_tiny_memory_serves_every_form_of_every_document(tmp_path: Path) -> None:
    keys = [f"apis/g{number}/v1" for number in range(6)]
    write_documents(tmp_path, {key: document(key, LARGE) for key in keys[:2]})

    native = FakeAPIServer({key: document(key, LARGE) for key in keys[2:4]})
    legacy = FakeAPIServer(None, swagger(keys[4], LARGE))
    async with (
        serving(native),
        serving(legacy),
        service(
            directory("files", tmp_path),
            backend("native", native.url),
            backend("legacy", legacy.url),
            memory=MemorySettings(documents_bytes=1),
        ) as client,
    ):
        await client.ready()
        paths = await client.paths()
        assert len(paths) == 5

        async def read(number: int) -> None:
            url = paths[keys[number % 5]]
            accept = TYPES[number % 3]
            coding = CODINGS[number // 3 % 3]
            status, headers, body = await client.get(url, Accept=accept, Accept_Encoding=coding)
            assert status == 200
            assert headers["Content-Type"] == accept
            assert body

        for _ in range(3):
            await asyncio.gather(*(read(number) for number in range(45)))
        usage = client.app.published.representations.usage()
        assert usage.bytes - usage.pinned_bytes < 1_000_000
        await assert_no_500(client)


async def test_clients_that_leave_do_not_take_the_download_with_them() -> None:
    origin = FakeAPIServer({APPS: document(APPS)})
    origin.gate = asyncio.Event()
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        url = (await client.paths())[APPS]
        leaving = [asyncio.create_task(client.get(url)) for _ in range(5)]
        staying = [asyncio.create_task(client.get(url)) for _ in range(5)]
        await client.until(lambda: origin.count(f"/openapi/v3/{APPS}") == 1)
        for task in leaving:
            task.cancel()
        await asyncio.sleep(0.05)
        origin.gate.set()
        answers = await asyncio.gather(*staying)
        assert {(status, body) for status, _, body in answers} == {(200, document(APPS))}
        assert origin.count(f"/openapi/v3/{APPS}") == 1


async def test_backend_removed_during_its_download_is_503_or_404_at_once() -> None:
    origin, other = FakeAPIServer({APPS: document(APPS)}), FakeAPIServer({BATCH: document(BATCH)})
    origin.gate = asyncio.Event()
    async with (
        serving(origin),
        serving(other),
        service(backend("a", origin.url), backend("b", other.url)) as client,
    ):
        await client.ready()
        waiting = asyncio.create_task(client.get((await client.paths())[APPS]))
        await client.until(lambda: origin.count(f"/openapi/v3/{APPS}") == 1)
        await client.app.reconfigure(Settings(backends=(backend("b", other.url),)))
        async with asyncio.timeout(DEADLINE):
            status, _, body = await waiting
        assert status in (404, 503)
        assert orjson.loads(body)["kind"] == "Status"
        assert (await client.get((await client.paths())[BATCH]))[0] == 200
        origin.gate.set()
        await assert_no_500(client)


async def test_document_that_never_holds_still_is_503_with_retry_after() -> None:
    class Restless(FakeAPIServer):
        """Another document at every request."""

        number = 100

        async def _document(self, request: web.Request) -> web.Response:
            self.number += 1
            self.documents = {APPS: document(APPS, str(self.number))}
            return await super()._document(request)

    origin = Restless({APPS: document(APPS)})
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        for _ in range(5):
            status, headers, _ = await client.get(f"/openapi/v3/{APPS}")
            assert status == 503
            assert int(headers["Retry-After"]) >= 1
        await assert_no_500(client)


async def test_storm_of_reloads_loses_no_answer_of_a_backend_that_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stays, goes = FakeAPIServer({APPS: document(APPS)}), FakeAPIServer({BATCH: document(BATCH)})
    async with serving(stays), serving(goes), service(backend("stays", stays.url)) as client:
        await client.ready()
        url = (await client.paths())[APPS]
        statuses: list[int] = []

        async def read() -> None:
            while True:
                statuses.append((await client.get(url))[0])
                assert APPS in await client.paths()

        reading = asyncio.create_task(read())
        kept = backend("stays", stays.url)
        for number in range(40):
            changed = backend("stays", stays.url, priority=number)
            gone = backend(f"down-{number}", "http://127.0.0.1:9")
            more = backend("goes", goes.url, priority=-number)
            await client.app.reconfigure(Settings(backends=(changed, gone) if number % 2 else (kept, more)))
        await client.app.reconfigure(Settings(backends=(kept,)))
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert statuses
        assert set(statuses) == {200}
        assert list(await client.paths()) == [APPS]
        assert b"down-" not in (await client.get("/metrics"))[2]
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert [name for name in names if name.startswith("backend ")] == ["backend stays"]
    assert not [record for record in caplog.records if record.exc_info or record.levelname == "ERROR"]


async def test_nothing_blocks_the_event_loop(tmp_path: Path) -> None:
    """blockbuster raises where the loop sleeps, waits for a lock, or touches a file or a blocking socket."""
    folder = write_documents(tmp_path / "documents", {APPS: document(APPS, LARGE)})
    token = tmp_path / "token"
    token.write_text("secret")

    native = FakeAPIServer({BATCH: document(BATCH, LARGE)})
    legacy = FakeAPIServer(None, swagger(OTHER))
    async with serving(native), serving(legacy):
        files, old = directory("files", folder), backend("legacy", legacy.url)
        newer = backend("native", native.url, priority=1)
        backends = (files, old, backend("native", native.url))
        async with service(*backends, state=tmp_path / "state") as client:
            with blockbuster_ctx("specmux_aggregator"):
                await client.ready()
                paths = await client.paths()
                assert set(paths) == {APPS, BATCH, OTHER}
                for url, accept, coding in itertools.product(paths.values(), TYPES, CODINGS):
                    assert (await client.get(url, Accept=accept, Accept_Encoding=coding))[0] == 200
                await client.says_ready()
                for page in ("/livez", "/metrics", "/status"):
                    assert (await client.get(page))[0] == 200
                assert (await client.get(f"/openapi/v3/{BATCH}?hash=0123"))[0] == 301
                native.documents = {BATCH: document(BATCH, "2")}
                await client.app.reconfigure(Settings(backends=(files, newer)))
                publisher, second = client.app.publisher, hash_of(document(BATCH, "2"))
                await client.until(lambda: publisher.current.entries[BATCH].offer.hash == second)  # type: ignore[index]
                failures = [item.failure for item in publisher.current.observations.values()]
                assert failures == [None, None]


def test_second_signal_during_the_end_changes_nothing(tmp_path: Path) -> None:
    folder = write_documents(tmp_path, {APPS: document(APPS, "x" * 3_000_000)})
    with specmux("serve", "--directory", str(folder), "--listen-port", "0") as process:
        process.until_ready()
        process.send(signal.SIGHUP)
        connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=DEADLINE)
        connection.request("GET", process.paths()[APPS])
        response = connection.getresponse()
        response.read(1000)
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process.send(number)
        assert len(response.read()) > 2_990_000
        connection.close()
        assert process.wait() == 0
        assert "Traceback" not in process.output


@pytest.mark.parametrize("pause", [0.0, 0.01, 0.1])
def test_end_in_the_middle_of_a_reload_is_orderly(tmp_path: Path, pause: float) -> None:
    config = tmp_path / "specmux.yaml"
    folder = write_documents(tmp_path / "documents", {APPS: document(APPS)})
    line = "  - {name: %s, kind: directory, directory: %s}\n"
    config.write_text("backends:\n" + line % ("one", folder))
    with specmux("serve", "--config", str(config), "--listen-port", "0") as process:
        process.until_ready()
        config.write_text("backends:\n" + "".join(line % (f"b{n}", folder) for n in range(20)))
        process.send(signal.SIGHUP)
        time.sleep(pause)
        process.send(signal.SIGTERM)
        assert process.wait() == 0
        assert "Traceback" not in process.output
        assert "Unclosed" not in process.output
