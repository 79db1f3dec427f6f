"""Relayed watches: they end with the permission of their readers, and are opened a few at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from deadline import DEADLINE
from fakes.cluster import FakeCluster
from integration.proxied import watch
from running.proxying_service import THINGS, proxying
from running.service import backend
from running.wire_client import connected
from specmux_aggregator.auth import token_file
from specmux_aggregator.config.settings import AuthSettings, KubernetesSettings
from specmux_aggregator.proxy import exchanges, response
from specmux_aggregator.upstream.connections import connector

WATCH = f"{THINGS}?watch=1"
ALICE = "Authorization: Bearer alice-token"
REVIEWING = KubernetesSettings(in_cluster=True, api_services=False, crds=False, apiserver=False)


@pytest.mark.parametrize("mode", ["token-file", "kubernetes"])
async def test_watch_ends_with_the_token_of_its_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(response, "PERMISSION_LOOK", 0.05)
    monkeypatch.setattr(token_file, "INTERVAL", 0.05)
    path = tmp_path / "tokens"
    path.write_text("alice-token,alice\n")
    cluster = FakeCluster({})
    cluster.review_token = lambda _: {"user": {"username": "alice"}, "authenticated": True}

    def revoke() -> None:
        path.write_text("other,other\n")
        cluster.review_token = lambda _: None

    auth = {
        "token-file": AuthSettings(mode="token-file", token_file=path),
        "kubernetes": AuthSettings(mode="kubernetes", cache_seconds=0.1),
    }[mode]
    async with cluster:
        reviewed: dict[str, Any] = {}
        if mode == "kubernetes":
            reviewed = {"kubernetes": REVIEWING, "cluster": backend("k", cluster.url)}
        async with proxying(watch, auth=auth, **reviewed) as (origin, client), connected(client.base) as wire:
            await wire.ask(WATCH, ALICE)
            assert await wire.reader.readuntil(b"one\r\n")
            await asyncio.sleep(0.3)
            assert not wire.reader.at_eof()  # it goes on while it may
            revoke()
            async with asyncio.timeout(DEADLINE):
                rest = await wire.reader.read()
            assert b"0\r\n\r\n" not in rest  # which nobody may take for the whole
            await _until(lambda: all(seen.left.is_set() for seen in origin.requests))


async def test_connections_are_opened_a_few_at_a_time_and_who_waits_is_not_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opening: list[int] = [0, 0]
    opened = connector.open_connection

    async def slowly(request: aiohttp.ClientRequest, *arguments: Any, **more: Any) -> Any:
        """As a handshake on a busy machine."""
        if "watch" not in request.url.query:  # a check of the backend
            return await opened(request, *arguments, **more)
        opening[0] += 1
        opening[1] = max(opening)
        try:
            await asyncio.sleep(0.2)
            return await opened(request, *arguments, **more)
        finally:
            opening[0] -= 1

    monkeypatch.setattr(exchanges, "CONNECT_TIMEOUT", 2.0)
    async with proxying(watch) as (origin, client):
        monkeypatch.setattr(connector, "open_connection", slowly)
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(126):  # every resource that informers of client-go watch, at once
                wire = await stack.enter_async_context(connected(client.base))
                await wire.ask(WATCH)
            await _until(lambda: len(origin.requests) == 126)
        assert opening[1] <= exchanges.OPENINGS
        await _until(lambda: all(seen.left.is_set() for seen in origin.requests))


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not is_so():
            await asyncio.sleep(0.01)
