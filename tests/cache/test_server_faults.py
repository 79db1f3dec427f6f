"""Servers that are dead, endless or lie, and directories that cannot be used."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from pathlib import Path

import pytest
import trustme
from blockbuster import BlockingError, blockbuster_ctx

from cache.client_setting import CORE, options, reference
from fakes.openapi_server import Reply, Request, serving
from running.open_files import needs_proc, open_in
from specmux_cache import AsyncSchemaCache, CacheOptions, StoreLimits
from specmux_cache.errors import BadAnswer, RequestError, ServerUnreachable
from specmux_cache.store.opening import open_store


async def test_server_when_it_is_dead_fails_at_once_and_names_no_reason_of_its_own(tmp_path):
    async with serving(reference()) as server:
        pass
    async with AsyncSchemaCache(server.url, options(tmp_path)) as cache:
        with pytest.raises(ServerUnreachable, match="connection refused"):
            await cache.schema("v1")


async def test_tls_when_the_authority_is_trusted_and_when_it_is_not(tmp_path):
    authority = trustme.CA()
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(own)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async with serving(reference(), tls=own) as server:
        async with AsyncSchemaCache(server.url, options(tmp_path), tls=trusting) as cache:
            assert (await cache.schema("v1")).body == CORE
        async with AsyncSchemaCache(server.url, CacheOptions(directory=None)) as cache:
            with pytest.raises(ServerUnreachable, match="certificate was refused"):
                await cache.schema("v1")
        plain = server.url.replace("https", "http")
        async with AsyncSchemaCache(plain, CacheOptions(directory=None)) as cache:
            with pytest.raises(RequestError):
                await cache.schema("v1")


async def test_server_when_it_never_ends_its_answer_is_given_up(tmp_path):
    async def answer(_: Request) -> Reply:
        await asyncio.sleep(30)
        return Reply()

    async with (
        serving(answer) as server,
        AsyncSchemaCache(server.url, options(tmp_path, timeout=0.2)) as cache,
    ):
        with pytest.raises(ServerUnreachable, match=r"no whole answer within 0\.2 s"):
            await cache.paths()


async def test_root_when_it_names_urls_of_others_follows_none(tmp_path):
    paths = {
        "apis/a/v1": {"serverRelativeURL": "http://evil.example/openapi/v3/apis/a/v1?hash=A"},
        "apis/b/v1": {"serverRelativeURL": "//evil.example/openapi/v3/apis/b/v1?hash=A"},
        "apis/c/v1": {"serverRelativeURL": "/openapi/v3/../../secrets?hash=A"},
        "apis/d/v1": {"serverRelativeURL": 5},
        "apis/e/v1": None,
        "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=A"},
    }

    reply = Reply(200, json.dumps({"paths": paths}).encode())
    async with (
        serving(lambda _: reply) as server,
        AsyncSchemaCache(server.url, options(tmp_path)) as cache,
    ):
        found = await cache.paths()
        assert list(found.documents) == ["api/v1"]
        assert found.refused == ("apis/a/v1", "apis/b/v1", "apis/c/v1", "apis/d/v1", "apis/e/v1")


@pytest.mark.parametrize("body", [b"", b"[]", b'{"paths":[]}', b"{}", b"not json"])
async def test_root_when_it_is_none_is_an_error_and_the_last_good_one_stands_in(tmp_path, body):
    backend = reference()
    async with serving(backend) as server, AsyncSchemaCache(server.url, options(tmp_path)) as cache:
        server.answer = lambda _: Reply(200, body, [("Content-Type", "application/json")])
        with pytest.raises(BadAnswer):
            await cache.paths()
        server.answer = backend
        await cache.paths()
        server.answer = lambda _: Reply(200, body, [("Content-Type", "application/json")])
        assert (await cache.paths()).stale


@pytest.mark.parametrize("fault", ["a file", "a symlink", "not a cache", "not writable"])
async def test_directory_when_it_cannot_be_used_is_one_warning_and_memory(tmp_path, fault):
    # Not even root makes directories in /proc.
    directory = Path("/proc/self/specmux") if fault == "not writable" else tmp_path / "c"
    if fault == "a file":
        directory.write_text("x")
    elif fault == "a symlink":
        (tmp_path / "real").mkdir()
        directory.symlink_to(tmp_path / "real")
    elif fault == "not a cache":
        directory.mkdir()
        (directory / "thesis.tex").write_text("x")
    warnings: list[str] = []

    async with (
        serving(reference()) as server,
        AsyncSchemaCache(server.url, CacheOptions(directory=directory), warn=warnings.append) as cache,
    ):
        assert [(await cache.schema("v1")).from_cache for _ in range(2)] == [False, True]
        assert (await cache.stats()).store is None
        assert (await cache.compact()).entries == 0
    assert len(warnings) == 1
    assert "using memory instead" in warnings[0]


@needs_proc
async def test_directory_when_it_has_gone_meanwhile_goes_on_in_memory(tmp_path):
    warnings: list[str] = []

    async with (
        serving(reference()) as server,
        AsyncSchemaCache(server.url, options(tmp_path), warn=warnings.append) as cache,
    ):
        await cache.schema("v1")
        (tmp_path / "c").rename(tmp_path / "moved")
        (tmp_path / "c").write_text("in its place")
        for _ in range(3):
            assert (await cache.schema("v1")).body == CORE
        assert open_in(tmp_path / "moved") == set()
    assert len(warnings) <= 1


async def test_event_loop_when_a_client_works_is_never_blocked(tmp_path):
    async with serving(reference()) as server:
        with blockbuster_ctx("specmux_cache"):
            async with AsyncSchemaCache(server.url, options(tmp_path)) as cache:
                await cache.prefetch()
                await cache.spec("v1")
                await cache.resource("/openapi/v3")
                await cache.merge()
                await cache.export(tmp_path / "bundle.zip")
                await cache.import_(tmp_path / "bundle.zip")
                await cache.compact()
                await cache.stats()
                await cache.invalidate()
            # It would have been seen.
            with pytest.raises(BlockingError):
                open_store(tmp_path / "d", limits=StoreLimits(), clock=time.time, warn=print)
