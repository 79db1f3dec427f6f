"""The change log of a running service, over real sockets: what changed, when it settled, and what is kept."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
import zstandard

from data.compared import definition, document
from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer
from fakes.apiserver import serving as serving_apiserver
from running.service import Client, backend, directory, service
from specmux_aggregator.config.settings import ChangeSettings, DiscoverySettings
from specmux_aggregator.documents.archive import StateDirectory
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_converters.codecs import cbor
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion

STRING = {"type": "string"}
KEY = "apis/example.com/v1"
QUICK = ChangeSettings(settle=0.05)


def fields(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict.fromkeys(names, STRING)}


def write(folder: Path, schema: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "widgets.yaml").write_text(yaml.safe_dump(definition(schema)))


def crds(folder: Path) -> Backend:
    return Backend(name=BackendName("crds"), kind=BackendKind.CRDS, directory=folder)


async def entries(client: Client, path: str = f"/openapi/changes/{KEY}") -> list[dict[str, Any]]:
    status, _, body = await client.get(path)
    assert status == 200
    return list(orjson.loads(body)["entries"])


async def entries_of(client: Client, count: int) -> list[dict[str, Any]]:
    """The newest first, as soon as there are so many."""
    assert client.app.history is not None
    log = client.app.history.log
    await client.until(lambda: len(log) >= count, f"{count} entries")
    return await entries(client)


async def test_a_change_of_a_definition_is_logged_with_what_it_breaks(tmp_path: Path) -> None:
    write(tmp_path / "crds", fields("a", "b"))
    async with service(crds(tmp_path / "crds"), changes=QUICK) as client:
        await settled(client)
        assert (await client.get("/openapi/changes"))[0] == 200
        assert await entries(client) == []
        write(tmp_path / "crds", fields("a", "c"))
        (entry,) = await entries_of(client, 1)
        assert (entry["result"], entry["groupVersion"]) == ("compared", KEY)
        assert entry["old"]["backend"] == entry["new"]["backend"] == "crds"
        assert [(each["id"], each["path"]) for each in entry["changes"]] == [
            ("field-removed", "spec.b"),
            ("field-added", "spec.c"),
        ]
        assert entry["summary"] == {"breaking": 1, "warning": 0, "notice": 1, "documentation": 0}
        latest = await entries(client, "/openapi/changes")
        assert latest == [entry]
        metrics = (await client.get("/metrics"))[2].decode()
        labels = f'backend="crds",group_version="{KEY}",severity="breaking"'
        assert f"specmux_group_version_changes_total{{{labels}}} 1.0" in metrics
        assert 'specmux_change_comparisons_total{result="compared"} 1.0' in metrics


@pytest.mark.parametrize("short", [MemoryError(), zstandard.ZstdError("Allocation error")])
async def test_log_outlives_a_shortage_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, short: Exception
) -> None:
    def fails(level: int) -> None:
        raise short

    write(tmp_path / "crds", fields("a", "b"))
    async with service(crds(tmp_path / "crds"), changes=QUICK) as client:
        await settled(client)
        with monkeypatch.context() as patched:
            patched.setattr(zstandard, "ZstdCompressor", fails)
            write(tmp_path / "crds", fields("a", "c"))
            await entries_of(client, 1)
        write(tmp_path / "crds", fields("a", "d"))
        (entry, _) = await entries_of(client, 2)
        assert (entry["groupVersion"], entry["old"]["backend"]) == (KEY, "crds")
    assert "is not kept for comparisons" in caplog.text
    assert "no longer logged" not in caplog.text


async def settled(client: Client) -> None:
    """What the service found at its start is known, and kept."""
    history = client.app.history
    assert history is not None
    await client.ready()
    await client.until(lambda: history.is_settled, "settled")


async def test_a_document_that_changes_back_before_it_settles_did_not_change(tmp_path: Path) -> None:
    write(tmp_path / "crds", fields("a"))
    async with service(crds(tmp_path / "crds"), changes=ChangeSettings(settle=2.0)) as client:
        await settled(client)
        first = (await client.paths())[KEY]
        write(tmp_path / "crds", fields("a", "b"))
        await _until_path(client, lambda now: now != first)
        write(tmp_path / "crds", fields("a"))
        await _until_path(client, lambda now: now == first)
        await settled(client)
        assert await entries(client) == []


async def _until_path(client: Client, is_so: Any) -> None:
    async with asyncio.timeout(DEADLINE):
        while not is_so((await client.paths()).get(KEY)):
            await asyncio.sleep(0.02)


async def test_a_document_that_was_there_before_returned(tmp_path: Path) -> None:
    write(tmp_path / "crds", fields("a"))
    async with service(crds(tmp_path / "crds"), changes=QUICK) as client:
        await settled(client)
        for number, schema in enumerate((fields("a", "b"), fields("a"))):
            write(tmp_path / "crds", schema)
            await entries_of(client, number + 1)
        found = await entries(client)
        assert [entry["result"] for entry in found] == ["returned", "compared"]
        assert [entry["summary"]["breaking"] for entry in found] == [1, 0]  # the way back removes the field
        assert await entries(client, f"/openapi/changes/{KEY}?severity=breaking") == found[:1]
        assert await entries(client, f"/openapi/changes/{KEY}?since={found[1]['id']}") == found[:1]


async def test_group_versions_come_and_go(tmp_path: Path) -> None:
    write(tmp_path / "crds", fields("a"))
    async with service(crds(tmp_path / "crds"), changes=QUICK) as client:
        await settled(client)
        other = definition(fields("a"), name="v2", storage=False)
        both = definition(fields("a"))
        both["spec"]["versions"].append(other["spec"]["versions"][0])
        (tmp_path / "crds" / "widgets.yaml").write_text(yaml.safe_dump(both))
        await entries_of(client, 1)
        write(tmp_path / "crds", fields("a"))
        assert client.app.history is not None
        await client.until(lambda: len(client.app.history.log) == 2)  # type: ignore[union-attr]
        gone, new = await entries(client, "/openapi/changes/apis/example.com/v2")
        assert [each["id"] for each in new["changes"]] == ["group-version-added"]
        (change,) = gone["changes"]
        assert (change["id"], change["severity"]) == ("group-version-removed", "breaking")
        assert change["impact"]["stored"] == "none"  # v1 serves them still
        assert gone["new"] is None


async def test_conditional_requests_forms_and_comparisons_by_hash(tmp_path: Path) -> None:
    write(tmp_path / "crds", fields("a", "b"))
    async with service(crds(tmp_path / "crds"), changes=QUICK) as client:
        await settled(client)
        write(tmp_path / "crds", fields("a"))
        (entry,) = await entries_of(client, 1)
        path = f"/openapi/changes/{KEY}"
        _, headers, _ = await client.get(path)
        status, again, body = await client.get(path, If_None_Match=headers["ETag"])
        assert (status, body, again["ETag"]) == (304, b"", headers["ETag"])
        assert (await client.get(path, Accept_Encoding="gzip"))[1]["Content-Encoding"] == "gzip"
        text = (await client.get(path, Accept="text/plain"))[2].decode()
        assert "field-removed: the field is gone: string" in text
        markdown = await client.get(path, Accept="text/markdown")
        assert "## Breaking" in markdown[2].decode()
        _, headers, body = await client.get(path, Accept="application/cbor")
        assert headers["Content-Type"] == "application/cbor"
        assert cbor.decode(body, limits=Limits()) == orjson.loads((await client.get(path))[2])
        again = await client.get(path, Accept="application/cbor", If_None_Match=headers["ETag"])
        assert again[0] == 304
        assert (await client.get(path, Accept="image/png"))[0] == 406
        assert (await client.get(path, method="DELETE"))[0] == 405
        hashes = f"?from={entry['old']['hash']}&to={entry['new']['hash']}"
        status, headers, body = await client.get(path + hashes)
        assert status == 200
        assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert orjson.loads(body)["changes"] == entry["changes"]
        _, _, body = await client.get(path + hashes, Accept="application/cbor")
        assert cbor.decode(body, limits=Limits())["changes"] == entry["changes"]
        status, _, body = await client.get(f"{path}?from=ABC&to={entry['new']['hash']}")
        assert status == 404
        assert entry["old"]["hash"] in orjson.loads(body)["message"]
        assert (await client.get(f"{path}?from=ABC"))[0] == 400
        assert (await client.get(f"{path}?since=x"))[0] == 400
        assert (await client.get(f"{path}?severity=bad"))[0] == 400
        assert (await client.get("/openapi/changes/apis/nowhere/v1"))[0] == 404


async def test_the_log_outlives_the_process_and_so_does_what_it_is_told_against(tmp_path: Path) -> None:
    write(tmp_path / "crds", fields("a", "b"))
    state = tmp_path / "state"
    async with service(crds(tmp_path / "crds"), state=state, changes=QUICK) as client:
        await settled(client)
        write(tmp_path / "crds", fields("a", "b", "c"))
        (first,) = await entries_of(client, 1)
    write(tmp_path / "crds", fields("a", "c"))
    async with service(crds(tmp_path / "crds"), state=state, changes=QUICK) as client:
        second, *before = await entries_of(client, 2)
        assert before == [first]
        assert second["old"] == first["new"]
        assert [each["path"] for each in second["changes"]] == ["spec.b"]
        assert second["id"] > first["id"]


async def test_empty_log_says_since_when_and_that_outlives_the_process(tmp_path: Path) -> None:
    write(tmp_path / "crds", fields("a"))
    told = []
    for _ in range(2):
        async with service(crds(tmp_path / "crds"), state=tmp_path / "state", changes=QUICK) as client:
            await settled(client)
            for path in ("/openapi/changes", f"/openapi/changes/{KEY}"):
                page = orjson.loads((await client.get(path))[2])
                assert page["entries"] == []
                text = (await client.get(path, Accept="text/plain"))[2].decode()
                assert text == f"no changes; the log has every change since {page['completeSince']}\n"
                told.append(page["completeSince"])
    assert len(set(told)) == 1
    assert 0 <= time.time() - datetime.fromisoformat(told[0]).timestamp() < 3600


async def test_log_without_a_stored_beginning_begins_with_its_first_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an earlier version left it."""
    write(tmp_path / "crds", fields("a"))
    with monkeypatch.context() as patched:
        patched.setattr(StateDirectory, "keep_beginning", lambda self, at: None)
        async with service(crds(tmp_path / "crds"), state=tmp_path / "state", changes=QUICK) as client:
            await settled(client)
            write(tmp_path / "crds", fields("a", "b"))
            (entry,) = await entries_of(client, 1)
    async with service(crds(tmp_path / "crds"), state=tmp_path / "state", changes=QUICK) as client:
        await settled(client)
        page = orjson.loads((await client.get("/openapi/changes"))[2])
        assert (page["entries"], page["completeSince"]) == ([entry], entry["at"])


async def test_all_entries_are_had_page_by_page_the_oldest_first(tmp_path: Path) -> None:
    write(tmp_path / "crds", fields("a"))
    async with service(crds(tmp_path / "crds"), changes=QUICK) as client:
        await settled(client)
        for number, names in enumerate(("ab", "b", "bc", "bcd", "bcde")):
            write(tmp_path / "crds", fields(*names))
            await entries_of(client, number + 1)
        newest = await entries(client)
        for path in ("/openapi/changes", f"/openapi/changes/{KEY}"):
            found, query = [], "?since=1&limit=2"
            for _ in range(3):
                _, _, body = await client.get(f"{path}{query}")
                page = orjson.loads(body)
                assert page["reset"] is False
                found += page["entries"]
                query = f"?since=1&limit=2&continue={page.get('continue')}"
            assert found == newest[::-1]
            assert "continue" not in page
            assert page["last"] == newest[0]["id"]
            _, _, body = await client.get(f"{path}?since={page['last']}")
            assert orjson.loads(body)["entries"] == []
            # The last breaking one, whatever came after it.
            assert await entries(client, f"{path}?severity=breaking") == [newest[3]]
            _, _, body = await client.get(f"{path}?since={newest[0]['id'] + 10**8}")
            assert orjson.loads(body)["reset"] is True
            _, _, body = await client.get(f"{path}?since=1&limit=2", Accept="text/plain")
            assert body.endswith(b"more: continue=%d\n" % newest[3]["id"])
            for query in ("?limit=0", "?limit=101", "?limit=x", "?since=1&continue=x"):
                assert (await client.get(f"{path}{query}"))[0] == 400


@pytest.mark.parametrize("fetches", [False, True])
async def test_native_documents_are_compared_where_both_are_at_hand(fetches: bool) -> None:
    async with serving_apiserver(FakeAPIServer({KEY: orjson.dumps(document(fields("a", "b")))})) as server:
        changes = ChangeSettings(settle=0.05, fetch_native=fetches)
        async with service(backend("native", server.url), changes=changes) as client:
            await settled(client)
            server.documents[KEY] = orjson.dumps(document(fields("a")))
            (entry,) = await entries_of(client, 1)
            assert entry["result"] == ("compared" if fetches else "unavailable")
            assert [each["id"] for each in entry["changes"]] == ["field-removed"] * fetches


async def test_fetched_documents_are_kept_many_at_once() -> None:
    names = [f"apis/g{number}.example.com/v1" for number in range(40)]
    documents = {name: orjson.dumps(document(fields(name))) for name in names}
    undiscovered = DiscoverySettings(enabled=False)
    async with (
        serving_apiserver(FakeAPIServer(documents)) as origin,
        service(backend("a", origin.url), changes=QUICK, discovery=undiscovered) as client,
    ):
        await settled(client)
        history = client.app.history
        assert history is not None
        for path in (await client.paths()).values():
            assert (await client.get(path))[0] == 200
            await asyncio.sleep(0.02)
        kept = {0}
        async with asyncio.timeout(DEADLINE):
            while len(names) not in kept:
                kept.add(sum(bool(history.hashes(GroupVersion(name))) for name in names))
                await asyncio.sleep(0.01)
    assert len(kept) < len(names) // 2, kept


async def test_another_owner_of_the_same_document_is_an_entry(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        (folder / "doc.json").write_bytes(orjson.dumps(document(fields("a"))))
    backends = directory("one", folders[0], priority=1), directory("two", folders[1])
    async with service(*backends, changes=QUICK) as client:
        await settled(client)
        (folders[0] / "doc.json").unlink()
        (entry,) = await entries_of(client, 1)
        assert entry["result"] == "moved"
        assert {entry["old"]["backend"], entry["new"]["backend"]} == {"one", "two"}


async def test_without_changes_there_is_no_such_path(tmp_path: Path) -> None:
    write(tmp_path / "crds", fields("a"))
    async with service(crds(tmp_path / "crds"), changes=ChangeSettings(enabled=False)) as client:
        assert (await client.get("/openapi/changes"))[0] == 404


async def test_removal_while_the_service_is_down_is_told(tmp_path: Path) -> None:
    write(tmp_path / "crds", fields("a"))
    other = (tmp_path / "crds" / "widgets.yaml").read_text().replace("example.com", "other.example.com")
    (tmp_path / "crds" / "other.yaml").write_text(other)
    state = tmp_path / "state"
    async with service(crds(tmp_path / "crds"), state=state, changes=QUICK) as client:
        await settled(client)
    (tmp_path / "crds" / "widgets.yaml").unlink()
    async with service(crds(tmp_path / "crds"), state=state, changes=QUICK) as client:
        (entry,) = await entries_of(client, 1)
        assert (entry["groupVersion"], entry["new"]) == (KEY, None)
    async with service(crds(tmp_path / "crds"), state=state, changes=QUICK) as client:
        await settled(client)
        assert len(await entries(client)) == 1
