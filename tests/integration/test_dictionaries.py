"""Documents as their difference from the one that a client has (RFC 9842), asked for over sockets."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from click.testing import CliRunner

from data.deltas import FILLER, decompressed, offer
from fakes.apiserver import FakeAPIServer, document, hash_of, serving
from running.service import Client, backend, service
from specmux_aggregator.cli import main
from specmux_aggregator.config.settings import AuthSettings, ChangeSettings, DictionarySettings
from specmux_cache import AsyncSchemaCache, CacheOptions
from specmux_converters.media_types import CBOR, JSON, PROTOBUF

APPS, OTHER = "apis/apps/v1", "apis/other.example.org/v1"
FORMS = [JSON, PROTOBUF, CBOR, "application/json;profile=schemas", "application/json;profile=components"]
PLAIN_VARY, VARY = "Accept, Accept-Encoding", "Accept, Accept-Encoding, Available-Dictionary"
QUICK = {"changes": ChangeSettings(settle=0.05), "dictionaries": DictionarySettings(wait=30)}


def revision(group_version: str, note: str) -> bytes:
    """A document of 40 KB that differs little from its other revisions."""
    tree = orjson.loads(document(group_version, note))
    tree["components"] = {"schemas": {"Thing": {"type": "string", "description": group_version + FILLER}}}
    return orjson.dumps(tree)


@dataclass
class Upgrade:
    """A service that publishes the second revision of two documents, and what it gave of the first."""

    client: Client
    url: str
    hash: str
    old: dict[str, bytes]
    """By form; of the other group-version by its name."""

    async def get(self, **fields: str) -> tuple[int, Any, bytes]:
        return await self.client.get(self.url, **fields)

    async def metric(self, name: str) -> float:
        _, _, body = await self.client.get("/metrics")
        return float(body.decode().partition(f"\n{name} ")[2].partition("\n")[0])


@asynccontextmanager
async def upgraded(**settings: Any) -> AsyncIterator[Upgrade]:
    """``fields``: of requests. ``before``: what is done while the first revisions are published."""
    fields, before = settings.pop("fields", {}), settings.pop("before", None)
    first = {key: revision(key, "1") for key in (APPS, OTHER)}
    async with (
        serving(FakeAPIServer(first)) as origin,
        service(backend("a", origin.url), **(QUICK | settings)) as client,
    ):
        await client.ready()
        hashes = {key: hash_of(body) for key, body in first.items()}
        old = {}
        for form, key in [*((form, APPS) for form in FORMS), (JSON, OTHER)]:
            status, headers, body = await client.get(
                f"/openapi/v3/{key}?hash={hashes[key]}", Accept=form, **fields
            )
            assert status == 200
            assert headers["Vary"] == PLAIN_VARY
            assert headers.get("Use-As-Dictionary", "") == (
                f'match="v1?*", id="{hashes[key]}"' if client.app._deltas is not None else ""
            )
            old[form if key == APPS else OTHER] = body
        if before is not None:
            await before(client.base)
        history = client.app.history
        if history is not None:
            await client.until(lambda: all(history.hashes(key) for key in first), "kept")  # type: ignore[arg-type]
        origin.documents = {key: revision(key, "2") for key in first}
        new = {key: hash_of(body) for key, body in origin.documents.items()}
        entries = lambda: client.app.publisher.current.entries  # noqa: E731
        await client.until(lambda: all(entries()[key].offer.hash == new[key] for key in new), "published")  # type: ignore[index]
        yield Upgrade(client, f"/openapi/v3/{APPS}?hash={new[APPS]}", hashes[APPS], old)


async def test_every_form_is_compressed_with_the_form_that_the_client_has() -> None:
    async with upgraded() as upgrade:
        for form in FORMS:
            _, plain_headers, plain = await upgrade.get(Accept=form)
            zipped = gzip.compress(plain)
            for _ in range(4):  # of memory too, and of the memo
                status, headers, body = await upgrade.get(
                    Accept=form, **offer(upgrade.old[form], upgrade.hash)
                )
                assert (status, headers["Content-Encoding"], headers["Vary"]) == (200, "dcz", VARY)
                assert decompressed(body, upgrade.old[form]) == plain
                assert len(body) < len(zipped) / 10
                assert headers["Content-Type"] == plain_headers["Content-Type"]
                assert headers["Use-As-Dictionary"] == plain_headers["Use-As-Dictionary"]
                digest = hashlib.sha256(upgrade.old[form]).hexdigest()[:32]
                assert headers["ETag"] == plain_headers["ETag"][:-1] + f'-dcz-{digest}"'
        assert await upgrade.metric("specmux_dictionary_deltas_made_total") == len(FORMS)
        assert await upgrade.metric("specmux_dictionary_deltas_bytes") > 0


async def test_what_is_no_predecessor_in_this_form_gets_the_ordinary_answer() -> None:
    async with upgraded() as upgrade:
        old, right = upgrade.old, offer(upgrade.old[JSON], upgrade.hash)
        digest = right["Available-Dictionary"]
        results = {"unknown": 0, "mismatched": 0}
        for result, changed in (
            ("mismatched", offer(b"another", upgrade.hash)),
            ("mismatched", offer(old[PROTOBUF], upgrade.hash)),
            ("mismatched", offer(old[OTHER], upgrade.hash)),
            ("unknown", offer(old[OTHER], hash_of(old[OTHER]))),
            ("unknown", {"Dictionary-ID": '"' + "0" * 128 + '"'}),
            ("", {"Dictionary-ID": upgrade.hash}),
            ("", {"Dictionary-ID": '""'}),
            ("", {"Dictionary-ID": f'"{upgrade.hash}", "{upgrade.hash}"'}),
            ("", {"Available-Dictionary": digest.strip(":")}),
            ("", {"Available-Dictionary": f"{digest}, {digest}"}),
            ("", {"Available-Dictionary": digest.replace("=", "")}),
            ("", {"If-Match": f'"{hash_of(revision(APPS, "2"))}-zstd"'}),
            ("", {"Sec-Fetch-Site": "cross-site"}),
            ("", {"Accept-Encoding": "zstd, dcz;q=0"}),
            ("", {"Accept-Encoding": "zstd, *"}),
            ("", {"Accept-Encoding": "zstd"}),
        ):
            asked = right | changed
            status, headers, body = await upgrade.get(**asked)
            assert (status, headers["Content-Encoding"]) == (200, "zstd"), changed
            assert zstandard.decompress(body) == revision(APPS, "2")
            assert headers["Vary"] == (VARY if "Accept-Encoding" not in changed or result else PLAIN_VARY)
            if result:
                results[result] += 1
        for result, count in results.items():
            assert await upgrade.metric(f'specmux_dictionary_offers_total{{result="{result}"}}') == count
        assert await upgrade.metric("specmux_dictionary_deltas_made_total") == 1


async def test_heads_conditions_ranges_and_redirects() -> None:
    async with upgraded() as upgrade:
        right = offer(upgrade.old[JSON], upgrade.hash)
        _, headers, body = await upgrade.get(**right, Range="bytes=0-3")
        assert len(body) == int(headers["Content-Length"]) > 4
        status, head, nothing = await upgrade.get(method="HEAD", **right)
        assert (status, nothing) == (200, b"")
        named = ("Content-Encoding", "Content-Length", "ETag", "Vary", "Use-As-Dictionary")
        assert [head[name] for name in named] == [headers[name] for name in named]
        plain = await upgrade.get()
        for etag in (headers["ETag"], f'"{hash_of(plain[2])}-zstd"'):
            status, fields, nothing = await upgrade.get(**right, If_None_Match=etag)
            assert (status, nothing, fields["ETag"], fields["Vary"]) == (304, b"", etag, VARY)
            assert "Use-As-Dictionary" not in fields
        status, fields, nothing = await upgrade.client.get(f"/openapi/v3/{APPS}?hash={upgrade.hash}", **right)
        assert (status, nothing) == (301, b"")
        assert "Use-As-Dictionary" not in fields
        # A document without its hash is never fresh, and so is no dictionary; it may be made with one.
        status, fields, body = await upgrade.client.get(f"/openapi/v3/{APPS}", **right)
        assert decompressed(body, upgrade.old[JSON]) == plain[2]
        assert "Use-As-Dictionary" not in fields


async def test_delta_is_made_once_and_no_request_waits_long_for_it() -> None:
    async with upgraded(dictionaries=DictionarySettings(wait=0)) as upgrade:
        right = offer(upgrade.old[JSON], upgrade.hash)
        for status, headers, body in await asyncio.gather(
            *(upgrade.get(**right, Audit_ID=f"{n}") for n in range(9))
        ):
            assert (status, headers["Content-Encoding"], headers["Vary"]) == (200, "zstd", VARY)
            assert zstandard.decompress(body) == revision(APPS, "2")
        assert await upgrade.metric('specmux_dictionary_offers_total{result="late"}') == 9
        deltas = upgrade.client.app._deltas
        assert deltas is not None
        await upgrade.client.until(lambda: deltas.made == 1, "made")
        _, headers, body = await upgrade.get(**right)
        assert headers["Content-Encoding"] == "dcz"
        assert decompressed(body, upgrade.old[JSON]) == revision(APPS, "2")
        assert await upgrade.metric("specmux_dictionary_deltas_made_total") == 1


async def test_delta_is_for_those_who_may_read_the_document(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("a-token-of-somebody,somebody\n")
    proof = {"Authorization": "Bearer a-token-of-somebody"}
    auth = AuthSettings(mode="token-file", token_file=tokens)
    async with upgraded(auth=auth, fields=proof) as upgrade:
        right = offer(upgrade.old[JSON], upgrade.hash)
        for _ in range(3):
            status, headers, body = await upgrade.get(**right, **proof)
            assert (status, headers["Content-Encoding"]) == (200, "dcz")
            assert headers["Cache-Control"].startswith("private")
            assert decompressed(body, upgrade.old[JSON]) == revision(APPS, "2")
            for wrong in ({}, {"Authorization": "Bearer another-token"}):
                status, headers, body = await upgrade.get(**right, **wrong)
                assert status == 401
                assert "Use-As-Dictionary" not in headers


@pytest.mark.parametrize("media", ["json", "cbor", "protobuf", "schemas"])
async def test_client_library_upgrades_by_the_difference(media: str, tmp_path: Path) -> None:
    async def read(url: str) -> tuple[bytes, int, int]:
        async with AsyncSchemaCache(url, CacheOptions(tmp_path, allow_cbor=True)) as cache:
            schema, events = await cache.schema(APPS, media=media), (await cache.stats()).events
            return schema.body, events["delta"], events["delta_failed"]

    async with upgraded(before=read) as upgrade:
        form = {"cbor": CBOR, "protobuf": PROTOBUF, "schemas": FORMS[3]}.get(media, JSON)
        assert await read(upgrade.client.base) == ((await upgrade.get(Accept=form))[2], 1, 0)


@pytest.mark.parametrize("command", ["get apps/v1", "get apps/v1 --profile schemas", "search description"])
async def test_commands_upgrade_by_the_difference(command: str, tmp_path: Path) -> None:
    async def run(url: str) -> str:
        arguments = [*command.split(), "--server", url, "--cache-directory", str(tmp_path)]
        done = await asyncio.to_thread(CliRunner().invoke, main, arguments)
        assert done.exit_code in (0, 1), done.output
        return done.stdout

    async with upgraded(before=run) as upgrade:
        shown = await run(upgrade.client.base)
        assert await upgrade.metric('specmux_dictionary_offers_total{result="delta"}') >= 1
        assert orjson.loads(shown)["info"]["version"] == "2" if command.startswith("get") else True


@pytest.mark.parametrize(
    "settings",
    [{"dictionaries": DictionarySettings(enabled=False)}, {"changes": ChangeSettings(enabled=False)}],
    ids=["off", "nothing is kept"],
)
async def test_without_dictionaries_answers_are_as_they_were(settings: dict[str, Any]) -> None:
    async with upgraded(**settings) as upgrade:
        _, headers, body = await upgrade.get(**offer(upgrade.old[JSON], upgrade.hash))
        assert (headers["Content-Encoding"], headers["Vary"]) == ("zstd", PLAIN_VARY)
        assert zstandard.decompress(body) == revision(APPS, "2")


async def test_predecessor_is_found_on_disk_after_a_restart(tmp_path: Path) -> None:
    old, new = revision(APPS, "1"), revision(APPS, "2")
    async with serving(FakeAPIServer({APPS: old})) as origin:
        async with service(backend("a", origin.url), state=tmp_path, **QUICK) as client:
            await client.ready()
            await client.get(f"/openapi/v3/{APPS}?hash={hash_of(old)}")
            history = client.app.history
            assert history is not None
            await client.until(lambda: bool(history.hashes(APPS)), "kept")  # type: ignore[arg-type]
            origin.documents = {APPS: new}
            await client.until(lambda: len(history.log) == 1, "logged")
        async with service(backend("a", origin.url), state=tmp_path, **QUICK) as client:
            await client.ready()
            url = f"/openapi/v3/{APPS}?hash={hash_of(new)}"
            _, headers, body = await client.get(url, **offer(old, hash_of(old)))
            assert headers["Content-Encoding"] == "dcz"
            assert decompressed(body, old) == new
