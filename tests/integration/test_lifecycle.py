"""Backends that change their ways, configurations that change, restarts, and documents from directories."""

from __future__ import annotations

import gzip
import logging
import shutil
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from fakes.apiserver import FakeAPIServer, document, serving, swagger
from running.service import QUICK, backend, directory, service
from specmux_aggregator.config.settings import PollingSettings, Settings
from specmux_aggregator.model.backend import BackendKind
from specmux_converters.codecs import cbor
from specmux_converters.document import Limits

APPS, BATCH = "apis/apps/v1", "apis/batch/v1"


def lossy(swagger_document: bytes) -> bytes:
    """The document with one construct that v3 has no form for."""
    tree = orjson.loads(swagger_document)
    (item,) = tree["paths"].values()
    fields = {"name": "fields", "in": "query", "type": "array", "items": {"type": "string"}}
    item["get"]["parameters"] = [{**fields, "collectionFormat": "tsv"}]
    return orjson.dumps(tree)


async def test_v2_backend_is_converted_and_taken_over_when_it_learns_v3() -> None:
    origin = FakeAPIServer(None, lossy(swagger(APPS)))
    async with serving(origin), service(backend("old", origin.url)) as client:
        await client.ready()
        status = await client.status()
        assert status["backends"]["old"]["speaks"] == "v2"
        assert status["groupVersions"][APPS]["provenance"] == "converted"
        code, headers, body = await client.get((await client.paths())[APPS])
        assert code == 200
        assert int(headers["Specmux-Losses"]) == status["groupVersions"][APPS]["losses"] > 0
        assert orjson.loads(body)["openapi"].startswith("3.")
        converted = client.app.publisher.current.entries[APPS].offer.hash  # type: ignore[index]
        origin.documents = {APPS: document(APPS)}
        publisher = client.app.publisher
        await client.until(lambda: publisher.current.observations["old"].dialect == "v3")  # type: ignore[index]
        assert publisher.current.entries[APPS].offer.hash != converted  # type: ignore[index]
        assert (await client.get((await client.paths())[APPS]))[2] == document(APPS)


async def test_changed_v2_document_is_published_with_another_hash() -> None:
    origin = FakeAPIServer(None, swagger(APPS))
    async with serving(origin), service(backend("old", origin.url, kind=BackendKind.V2)) as client:
        await client.ready()
        publisher = client.app.publisher
        before = publisher.current.entries[APPS].offer.hash  # type: ignore[index]
        origin.swagger_document = swagger(APPS, "2")
        await client.until(lambda: publisher.current.entries[APPS].offer.hash != before)  # type: ignore[index]
        assert b'"version":"2"' in (await client.get((await client.paths())[APPS]))[2]


async def test_v3_that_is_missing_once_is_no_v2_backend() -> None:
    origin = FakeAPIServer({APPS: document(APPS)}, swagger(APPS))
    slow = replace(QUICK, backoff_min=0.5, backoff_max=0.5)
    async with serving(origin), service(backend("a", origin.url), polling=slow) as client:
        await client.ready()
        documents, origin.documents = origin.documents, None
        publisher = client.app.publisher
        await client.until(lambda: publisher.current.observations["a"].failure is not None)  # type: ignore[index]
        origin.documents = documents
        await client.until(lambda: publisher.current.observations["a"].failure is None)  # type: ignore[index]
        assert publisher.current.observations["a"].dialect == "v3"  # type: ignore[index]
        assert origin.count("/openapi/v2") == 0


async def test_kind_v3_never_falls_back() -> None:
    origin = FakeAPIServer(None, swagger(APPS))
    async with serving(origin), service(backend("a", origin.url, kind=BackendKind.V3)) as client:
        await client.ready()
        assert (await client.status())["backends"]["a"]["error"]["cause"] == "not_found"
        assert origin.count("/openapi/v2") == 0


async def test_contested_group_version_is_reported_everywhere(caplog: pytest.LogCaptureFixture) -> None:
    one, two = FakeAPIServer({APPS: document(APPS, "1")}), FakeAPIServer({APPS: document(APPS, "2")})
    async with (
        serving(one),
        serving(two),
        service(backend("a", one.url), backend("b", two.url, priority=1)) as client,
    ):
        await client.ready()
        status = await client.status()
        assert status["conflicts"] == [{"groupVersion": APPS, "winner": "b", "losers": ["a"]}]
        _, headers, body = await client.get("/status", Accept="application/cbor")
        assert (headers["Content-Type"], headers["Vary"]) == ("application/cbor", "Accept")
        assert cbor.decode(body, limits=Limits())["conflicts"] == status["conflicts"]
        assert (await client.get("/status", Accept="text/plain"))[1]["Content-Type"] == "application/json"
        assert (await client.get((await client.paths())[APPS]))[2] == document(APPS, "2")
        assert b"specmux_group_version_conflicts 1.0" in (await client.get("/metrics"))[2]
        assert (
            sum(
                "OpenAPI spec of apis/apps/v1 is offered by several backends" in line
                for line in caplog.messages
            )
            == 1
        )


async def test_backends_come_go_and_change_without_a_restart() -> None:
    one, two = FakeAPIServer({APPS: document(APPS)}), FakeAPIServer({BATCH: document(BATCH)})
    async with serving(one), serving(two), service(backend("a", one.url)) as client:
        await client.ready()
        app = client.app
        assert list(await client.paths()) == [APPS]
        await app.reconfigure(Settings(backends=(backend("a", one.url), backend("b", two.url))))
        await client.until(lambda: BATCH in app.publisher.current.entries)
        await client.says_ready()
        asked = one.log.count("/openapi/v3")
        owned = frozenset({"apis/other/v1"})
        changed = backend("a", one.url, group_versions=owned)
        await app.reconfigure(Settings(backends=(changed, backend("b", two.url))))
        assert list(await client.paths()) == [BATCH]
        await app.reconfigure(Settings(backends=(backend("b", two.url),)))
        assert list(await client.paths()) == [BATCH]
        assert set((await client.status())["backends"]) == {"b"}
        assert one.log.count("/openapi/v3") >= asked


async def test_reload_says_what_waits_for_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with service() as client:
        app = client.app
        await app.reconfigure(replace(app.settings, backends=()))
        assert "wait for a restart" not in caplog.text
        moved = replace(app.settings.listen, port=app.settings.listen.port + 1)
        await app.reconfigure(replace(app.settings, listen=moved, polling=PollingSettings(interval=77)))
        assert "changed settings wait for a restart: listen, polling" in caplog.text


async def test_restart_with_the_backend_down_serves_the_last_good_documents(tmp_path: Path) -> None:
    native = FakeAPIServer({APPS: document(APPS)})
    legacy = FakeAPIServer(None, swagger(BATCH))
    async with serving(native), serving(legacy):
        backends = backend("a", native.url), backend("b", legacy.url)
        async with service(*backends, state=tmp_path) as client:
            await client.ready()
            paths = await client.paths()
            first = {key: (await client.get(url))[2] for key, url in paths.items()}
    async with service(*backends, state=tmp_path) as client:
        assert await client.paths() == paths
        discovery = client.app.discovery
        assert discovery is not None
        await client.until(lambda: discovery.index.is_complete)
        assert (await client.get("/readyz"))[0] == 200
        for key, url in paths.items():
            status, headers, body = await client.get(url)
            assert (status, body) == (200, first[key])
            assert "immutable" in headers["Cache-Control"]


async def test_state_of_another_address_is_not_restored(tmp_path: Path) -> None:
    origin = FakeAPIServer({APPS: document(APPS)})
    async with serving(origin), service(backend("a", origin.url), state=tmp_path) as client:
        await client.ready()
    async with service(backend("a", origin.url + "/other"), state=tmp_path) as client:
        await client.ready()
        assert (await client.get("/openapi/v3"))[0] == 503


async def test_damaged_state_directory_is_no_reason_not_to_serve(tmp_path: Path) -> None:
    origin = FakeAPIServer({APPS: document(APPS)})
    async with serving(origin):
        async with service(backend("a", origin.url), state=tmp_path / "state") as client:
            await client.ready()
            await client.get((await client.paths())[APPS])
        for path in (tmp_path / "state").rglob("*"):
            if path.is_file():
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        async with service(backend("a", origin.url), state=tmp_path / "state") as client:
            await client.ready()
            assert (await client.get((await client.paths())[APPS]))[2] == document(APPS)


def write(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(body) if path.suffix == ".gz" else body)


async def test_directory_serves_files_of_every_kind(tmp_path: Path) -> None:
    write(tmp_path / "apis/apps/v1.json", document(APPS))
    write(tmp_path / "apis__batch__v1_openapi.json", document(BATCH))
    write(tmp_path / "api/v1.json.gz", document("api/v1"))
    write(tmp_path / "by-its-paths.json", document("apis/other/v1"))
    write(tmp_path / "old.json", swagger("apis/old/v1"))
    write(
        tmp_path / "note.yaml",
        b"openapi: 3.0.0\ninfo: {title: t, version: '1'}\npaths: {/apis/yaml/v1/x: {}}\n",
    )
    write(tmp_path / "broken.json", b"{")
    write(tmp_path / "README.md", b"not a document")
    async with service(directory("files", tmp_path)) as client:
        await client.ready()
        assert sorted(await client.paths()) == [
            "api/v1", "apis/apps/v1", "apis/batch/v1", "apis/old/v1", "apis/other/v1", "apis/yaml/v1",
        ]  # fmt: skip
        status = await client.status()
        assert status["groupVersions"]["apis/old/v1"]["provenance"] == "converted"
        assert any(note.startswith("broken.json") for note in status["backends"]["files"]["notes"])
        body = (await client.get((await client.paths())[APPS]))[2]
        assert orjson.loads(body) == orjson.loads(document(APPS))


async def test_edited_file_is_published_and_a_broken_one_keeps_its_last_good_document(tmp_path: Path) -> None:
    write(tmp_path / "apis/apps/v1.json", document(APPS, "1"))
    write(tmp_path / "apis/batch/v1.json", document(BATCH, "1"))
    async with service(directory("files", tmp_path)) as client:
        await client.ready()
        publisher = client.app.publisher
        paths = await client.paths()
        write(tmp_path / "apis/apps/v1.json", document(APPS, "2"))
        write(tmp_path / "apis/batch/v1.json", b'{"openapi": "3.0')
        key = "apis/apps/v1"
        await client.until(lambda: publisher.current.entries[key].offer.hash not in paths[key])  # type: ignore[index]
        assert (await client.paths())[BATCH] == paths[BATCH]
        assert (await client.get(paths[BATCH]))[0] == 200
        (tmp_path / "apis/batch/v1.json").unlink()
        await client.until(lambda: BATCH not in publisher.current.entries)


async def test_v3_file_goes_before_a_converted_one_and_gives_way_when_removed(tmp_path: Path) -> None:
    write(tmp_path / "a-swagger.json", swagger(APPS))
    write(tmp_path / "apis/apps/v1.json", document(APPS))
    async with service(directory("files", tmp_path)) as client:
        await client.ready()
        publisher = client.app.publisher
        assert publisher.current.entries[APPS].offer.provenance == "file"  # type: ignore[index]
        (tmp_path / "apis/apps/v1.json").unlink()
        await client.until(lambda: publisher.current.entries[APPS].offer.provenance == "converted")  # type: ignore[index]
        status, _, body = await client.get((await client.paths())[APPS])
        assert status == 200
        assert orjson.loads(body)["openapi"].startswith("3.")


async def test_directory_that_vanishes_keeps_its_documents_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    write(folder / "apis/apps/v1.json", document(APPS))
    async with service(directory("files", folder)) as client:
        await client.ready()
        publisher = client.app.publisher
        shutil.rmtree(folder)
        await client.until(lambda: publisher.current.observations["files"].failure is not None)  # type: ignore[index]
        assert (await client.get((await client.paths())[APPS]))[0] == 200
        assert (await client.status())["backends"]["files"]["error"]["cause"] == "unreadable"


async def test_keys_of_others_in_a_root_are_one_line_of_information(caplog: pytest.LogCaptureFixture) -> None:
    key = "apis/wardle.example.com/v1"
    origin = FakeAPIServer(
        {each: document(key) for each in (key, "apis", "apis/wardle.example.com", "version")}
    )
    with caplog.at_level(logging.INFO):
        async with (
            serving(origin),
            service(backend("a", origin.url, group_versions=frozenset({key}))) as client,
        ):
            await client.ready()
            notes = (await client.status())["backends"]["a"]["notes"]
            assert notes == ["apis", "apis/wardle.example.com", "version"]
    lines = [record for record in caplog.records if "wardle" in record.getMessage()]
    assert [record.levelname for record in lines] == ["INFO"]
    assert "also lists apis, apis/wardle.example.com, version" in lines[0].getMessage()
