"""The client against servers that answer as the Go reference does, and as servers should not."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from fakes.openapi_server import PROTOBUF, Reply, Request, document, hash_of, serving
from specmux_cache import AsyncSchemaCache, CacheOptions, Event, GroupVersionNotFound
from specmux_cache.errors import (
    BadAnswer,
    NotCached,
    ServerUnreachable,
    UnexpectedStatus,
)

if TYPE_CHECKING:
    pass
from cache.referred import CORE, Clock, cached, reference


async def test_schema_when_asked_twice_transfers_the_document_once(tmp_path):
    async with serving(reference()) as server, cached(server, tmp_path / "c") as cache:
        first = await cache.schema("api/v1")
        again = await cache.schema("api/v1")
        assert (first.body, first.hash, first.etag) == (CORE, hash_of(CORE), f'"{hash_of(CORE)}"')
        assert (first.from_cache, again.from_cache, again.stale, again.lossy) == (
            False,
            True,
            False,
            False,
        )
        assert again.digest == first.digest
        assert len(server.seen("/openapi/v3/api/v1")) == 1


async def test_schema_when_another_client_comes_later_is_on_disk(tmp_path):
    async with serving(reference()) as server:
        async with cached(server, tmp_path / "c") as cache:
            await cache.schema("apps/v1")
        async with cached(server, tmp_path / "c") as cache:
            assert (await cache.schema("apis/apps/v1")).from_cache
            assert (await cache.paths()).from_cache


@pytest.mark.parametrize(
    ("written", "key"), [("v1", "api/v1"), ("apps/v1", "apis/apps/v1"), ("api/v1", "api/v1")]
)
async def test_schema_when_the_group_version_is_written_short(tmp_path, written, key):
    async with serving(reference()) as server, cached(server, None) as cache:
        assert (await cache.schema(written)).group_version == key


async def test_schema_when_the_etag_is_shared_between_formats_is_of_the_type_asked_for(tmp_path):
    async with serving(reference()) as server, cached(server, tmp_path / "c") as cache:
        for _ in range(2):
            assert (await cache.schema("v1")).body == CORE
            proto = await cache.schema("v1", media="protobuf")
            assert (proto.body, proto.media_type) == (b"pb:" + CORE, PROTOBUF)


async def test_schema_when_the_document_has_no_hash_is_revalidated_per_media_type(tmp_path):
    """Nothing held in this media type: no condition is sent, whatever ETag another format had."""

    def answer(request: Request) -> Reply:
        if request.path == "/openapi/v3":
            return Reply(200, b'{"paths":{"apis":{"serverRelativeURL":"/openapi/v3/apis"}}}')
        media = request.headers["accept"]
        fields = [("Etag", '"shared"'), ("Content-Type", media)]
        if "if-none-match" in request.headers:
            return Reply(304, headers=[("Etag", '"shared"'), ("Content-Type", "application/json")])
        return Reply(200, CORE if media == "application/json" else b"pb", fields)

    async with serving(answer) as server, cached(server, tmp_path / "c") as cache:
        assert (await cache.schema("apis")).body == CORE
        assert (await cache.schema("apis", media="protobuf")).body == b"pb"
        again = await cache.schema("apis", media="protobuf")
        assert (again.body, again.media_type, again.from_cache) == (b"pb", PROTOBUF, True)


async def test_paths_when_the_root_has_no_etag_and_is_text(tmp_path):
    """kube-aggregator's root."""

    async with (
        serving(reference(with_root_etag=False)) as server,
        cached(server, tmp_path / "c") as cache,
    ):
        assert list((await cache.paths()).documents) == ["api/v1", "apis/apps/v1"]
        assert not (await cache.paths()).from_cache
        assert all("if-modified-since" not in request.headers for request in server.requests)


async def test_paths_when_asked_again_revalidates_unless_trusted(tmp_path):
    clock = Clock()

    async with serving(reference()) as server:
        async with cached(server, tmp_path / "c", clock=clock) as cache:
            await cache.paths()
            assert (await cache.paths()).from_cache
            assert len(server.requests) == 2
            assert "if-none-match" in server.requests[1].headers
        async with cached(server, tmp_path / "c", clock=clock, root_ttl=5.0) as cache:
            clock.now += 4
            found = await cache.paths()
            assert (found.from_cache, found.stale, found.age) == (True, False, 4)
            assert len(server.requests) == 2
            await cache.paths(refresh=True)
            assert len(server.requests) == 3


async def test_paths_when_stale_is_served_at_once_and_revalidated_behind(tmp_path):
    clock, backend = Clock(), reference()

    async with (
        serving(backend) as server,
        cached(server, tmp_path / "c", clock=clock, stale_while_revalidate=60.0) as cache,
    ):
        await cache.paths()
        backend.documents["apis/new/v1"] = document("new")
        clock.now += 30
        found = await cache.paths()
        assert (found.stale, "apis/new/v1" in found.documents) == (True, False)
        for _ in range(500):
            await asyncio.sleep(0.01)
            if "apis/new/v1" in (await cache.paths()).documents:
                break
        assert "apis/new/v1" in (await cache.paths()).documents


async def test_schema_when_the_hash_is_stale_follows_one_redirect_and_keeps_the_new_hash(tmp_path):
    backend = reference()
    events: list[Event] = []

    async with (
        serving(backend) as server,
        cached(server, tmp_path / "c", root_ttl=3600.0, on_event=events.append) as cache,
    ):
        await cache.paths()
        backend.documents["api/v1"] = document("core 2")
        schema = await cache.schema("v1")
        assert schema.hash == hash_of(document("core 2"))
        assert [request.query["hash"] for request in server.seen("/openapi/v3/api/v1")] == [
            hash_of(CORE),
            schema.hash,
        ]
        assert "redirected" in [event.kind for event in events]
        await cache.schema("v1")
        # The stale hash is asked for again, the document is not.
        assert len(server.seen("/openapi/v3/api/v1")) == 3


async def test_schema_when_the_server_is_behind_a_prefix(tmp_path):
    backend = reference(prefix="/clusters/a")

    async with serving(backend) as server:
        options = CacheOptions(directory=tmp_path / "c", root_ttl=3600.0)
        async with AsyncSchemaCache(f"{server.url}/clusters/a", options) as cache:
            assert (await cache.schema("v1")).body == CORE
            backend.documents["api/v1"] = document("core 2")
            await cache.invalidate("v1")
            # The reference redirects to its own path, which lacks the prefix (k/k#117463).
            assert (await cache.schema("v1")).body == document("core 2")


async def test_schema_when_the_server_is_down_is_stale_and_says_so(tmp_path):
    async with serving(reference()) as server, cached(server, tmp_path / "c") as cache:
        await cache.schema("v1")
        await server.stop()
        schema = await cache.schema("v1")
        assert (schema.body, schema.from_cache, schema.stale) == (CORE, True, True)
        with pytest.raises(ServerUnreachable, match="refused"):
            await cache.schema("apps/v1")


async def test_schema_when_stale_answers_are_not_wanted_fails_with_the_server(tmp_path):
    async with (
        serving(reference()) as server,
        cached(server, tmp_path / "c", stale_if_error=0.0) as cache,
    ):
        await cache.schema("v1")
        await server.stop()
        with pytest.raises(ServerUnreachable):
            await cache.schema("v1")


async def test_schema_when_the_new_document_fails_gives_the_one_before(tmp_path):
    backend = reference()

    def answer(request: Request) -> Reply:
        if request.path == "/openapi/v3/api/v1" and len(server.seen(request.path)) > 1:
            return Reply(503, headers=[("Retry-After", "1")])
        return backend(request)

    async with serving(answer) as server, cached(server, tmp_path / "c") as cache:
        await cache.schema("v1")
        backend.documents["api/v1"] = document("core 2")
        schema = await cache.schema("v1")
        assert (schema.body, schema.stale, schema.hash) == (CORE, True, hash_of(CORE))


@pytest.mark.parametrize("status", [401, 403])
async def test_paths_when_the_server_refuses_us_nothing_stored_stands_in(tmp_path, status):
    backend: Any = reference()

    async with serving(backend) as server, cached(server, tmp_path / "c") as cache:
        await cache.paths()
        server.answer = lambda _: Reply(status)
        with pytest.raises(UnexpectedStatus) as caught:
            await cache.paths()
        assert caught.value.status == status


async def test_schema_when_offline_asks_nobody(tmp_path):
    backend = reference()

    async with serving(backend) as server:
        async with cached(server, tmp_path / "c") as cache:
            await cache.schema("v1")
            backend.documents["api/v1"] = document("core 2")
            await cache.paths()
        asked = len(server.requests)
        async with cached(server, tmp_path / "c", offline=True) as cache:
            schema = await cache.schema("v1")
            # The root names a newer revision that was never fetched; the one before is better than none.
            assert (schema.body, schema.stale) == (CORE, True)
            with pytest.raises(NotCached):
                await cache.schema("apps/v1")
            with pytest.raises(GroupVersionNotFound):
                await cache.schema("nope/v1")
        assert len(server.requests) == asked


async def test_unknown_group_version_when_asked_again_is_remembered_for_a_while(tmp_path):
    clock, backend = Clock(), reference()

    async with (
        serving(backend) as server,
        cached(server, tmp_path / "c", clock=clock, root_ttl=3600.0) as cache,
    ):
        await cache.paths()
        for _ in range(3):
            with pytest.raises(GroupVersionNotFound) as caught:
                await cache.schema("new/v1")
        assert caught.value.group_version == "new/v1"
        # The trusted root was asked for once more, then the answer was remembered.
        assert len(server.seen("/openapi/v3")) == 2
        backend.documents["apis/new/v1"] = document("new")
        clock.now += 2.1
        assert (await cache.schema("new/v1")).body == document("new")


async def test_wait_for_when_the_group_version_comes_later(tmp_path):
    backend = reference()

    async with serving(backend) as server, cached(server, tmp_path / "c") as cache:
        waiting = asyncio.create_task(cache.wait_for("new/v1", within=20.0))
        while len(server.requests) < 2:
            await asyncio.sleep(0.01)
        backend.documents["apis/new/v1"] = document("new")
        assert (await waiting).body == document("new")
        with pytest.raises(GroupVersionNotFound):
            await cache.wait_for("other/v1", within=0.0)


async def test_errors_when_they_pass_are_not_remembered(tmp_path):
    backend: Any = reference()

    async with serving(lambda _: Reply(500)) as server, cached(server, tmp_path / "c") as cache:
        with pytest.raises(UnexpectedStatus):
            await cache.schema("v1")
        server.answer = backend
        assert (await cache.schema("v1")).body == CORE


async def test_schema_when_the_answer_is_empty_is_an_error(tmp_path):
    """kube-openapi's handler3 answers 200 with nothing for a group-version it does not know."""
    backend = reference()

    def answer(request: Request) -> Reply:
        return backend(request) if request.path == "/openapi/v3" else Reply(200)

    async with serving(answer) as server, cached(server, tmp_path / "c") as cache:
        with pytest.raises(BadAnswer):
            await cache.schema("v1")


async def test_spec_when_decoded_is_shared_and_read_only(tmp_path):
    async with serving(reference()) as server, cached(server, tmp_path / "c") as cache:
        spec = await cache.spec("v1")
        assert spec is await cache.spec("v1")
        with pytest.raises(TypeError):
            spec["info"]["title"] = "changed"
        own = copy.deepcopy(dict(spec))
        own["info"]["title"] = "mine"
        assert json.loads(json.dumps(spec))["info"]["title"] == "core"
        assert (await cache.stats()).decoded == 1
