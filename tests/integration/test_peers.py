"""A backend with several servers of several versions: every listed document is there, and nothing flaps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import orjson
import pytest

from fakes.apiserver import FakeAPIServer, document, serving
from fakes.balanced import AlternatingServer, balanced
from running.service import Client, backend, service

A, OLD, NEW = "apis/a.example.org/v1", "apis/old.example.org/v1", "apis/new.example.org/v1"
BEFORE = {A: document(A, "1"), OLD: document(OLD)}
AFTER = {A: document(A, "2"), NEW: document(NEW)}


def server(documents: dict[str, bytes], version: str | None = None) -> FakeAPIServer:
    made = FakeAPIServer(dict(documents))
    if version is not None:
        made.discovery.version = {"gitVersion": version}
    return made


async def published(client: Client) -> dict[str, Any]:
    status, _, body = await client.get("/openapi/v3")
    while status == 503:  # nothing is known yet
        await asyncio.sleep(0.02)
        status, _, body = await client.get("/openapi/v3")
    assert status == 200
    return {key: entry["serverRelativeURL"] for key, entry in orjson.loads(body)["paths"].items()}


async def until_published(client: Client, keys: set[str]) -> dict[str, Any]:
    while True:
        paths = await published(client)
        if paths.keys() == keys:
            return paths
        await asyncio.sleep(0.02)


async def read_all(client: Client, rounds: int) -> list[tuple[str, int]]:
    """Roots and their documents, one round after the other; what was not 200. No group-version goes."""
    faults: list[tuple[str, int]] = []
    roots: list[dict[str, Any]] = []
    for _ in range(rounds):
        paths = await published(client)
        if not roots or roots[-1] != paths:
            roots.append(paths)
        for key, url in paths.items():
            status, _, body = await client.get(url)
            if status != 200 or orjson.loads(body)["openapi"] != "3.0.0":
                faults.append((key, status))
        await asyncio.sleep(0.01)
    assert len(roots) <= 2, "at most one change after the first root"
    assert all(before.keys() <= after.keys() for before, after in pairwise(roots))
    return faults


async def test_documents_of_servers_behind_a_balancer_of_connections() -> None:
    async with (
        balanced(server(BEFORE), server(AFTER)) as balancer,
        service(backend("lb", balancer.url)) as client,
    ):
        assert await read_all(client, 100) == []
        await until_published(client, {A, OLD, NEW})
        assert await read_all(client, 100) == []
        status = orjson.loads((await client.get("/status"))[2])["backends"]["lb"]["servers"]
        assert len(status["servers"]) == 2
        assert "not on all of them" in status["summary"]


async def test_documents_of_servers_behind_a_balancer_of_requests() -> None:
    async with (
        serving(AlternatingServer([BEFORE, AFTER])) as balancer,
        service(backend("lb", balancer.url)) as client,
    ):
        await until_published(client, {A, OLD, NEW})
        assert await read_all(client, 100) == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_newest_release_of_listed_servers_wins_in_any_order(order: Sequence[int]) -> None:
    servers = server(BEFORE, "v1.34.4"), server(AFTER, "v1.37.2")
    async with serving(servers[0]), serving(servers[1]):
        urls = tuple(servers[each].url for each in order)
        async with service(backend("ha", urls[0], urls=urls)) as client:
            paths = await until_published(client, {A, OLD, NEW})
            assert (await client.get(paths[A]))[2] == AFTER[A]
            assert await read_all(client, 20) == []
            groups = orjson.loads((await client.get("/apis"))[2])["groups"]
            assert {group["name"] for group in groups} == {key.split("/")[1] for key in (A, OLD, NEW)}


async def test_listed_server_that_dies_is_said_and_noticed_by_no_reader() -> None:
    servers = [server(BEFORE, "v1.37.2"), server(BEFORE, "v1.37.2"), server(BEFORE, "v1.37.2")]
    async with serving(servers[0]), serving(servers[1]), serving(servers[2]):
        urls = tuple(each.url for each in servers)
        async with service(backend("ha", urls[0], urls=urls)) as client:
            await until_published(client, {A, OLD})
            await servers[0].stop()
            servers[1].documents = servers[2].documents = dict(AFTER) | {OLD: BEFORE[OLD]}
            await until_published(client, {A, OLD, NEW})
            assert await read_all(client, 20) == []
            shown = orjson.loads((await client.get("/status"))[2])["backends"]["ha"]
            assert shown["state"] == "up"
            assert any(urls[0] in note for note in shown["notes"])


async def test_one_server_is_asked_no_more_than_before() -> None:
    async with serving(server(BEFORE)) as origin, service(backend("one", origin.url)) as client:
        await until_published(client, {A, OLD})
        assert await read_all(client, 5) == []
        origin.documents = {**BEFORE, NEW: document(NEW)}  # it gains: no reason to look twice
        origin.log.clear()
        await until_published(client, {A, OLD, NEW})
        roots = origin.count("/openapi/v3?") + sum(line == "/openapi/v3" for line in origin.log)
        await asyncio.sleep(0.5)
        later = sum(line == "/openapi/v3" for line in origin.log)
        assert roots <= later  # nothing but the checks
        assert orjson.loads((await client.get("/status"))[2])["backends"]["one"]["servers"] is None
        origin.documents = {A: BEFORE[A]}  # it loses: it is looked at again, and there is one alone
        await until_published(client, {A})
        assert orjson.loads((await client.get("/status"))[2])["backends"]["one"]["servers"] is None
