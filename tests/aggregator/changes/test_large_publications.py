"""All that is published, for many who ask for it at once: written once, counted once, given back."""

from __future__ import annotations

import asyncio
import gc
import io
import socket
import weakref
from pathlib import Path

import cbor2
import orjson
import pytest

from deadline import DEADLINE
from running.service import Client, service
from specmux_aggregator.changes import stream
from specmux_aggregator.changes.entries import PublishedVersion
from specmux_aggregator.changes.events import Followers
from specmux_aggregator.changes.stream import PIECE, write_event
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.server.connections import Connections
from specmux_converters.group_versions import GroupVersion

pytestmark = pytest.mark.long

VERSIONS = {
    GroupVersion(f"apis/g{number}.example.com/v1"): PublishedVersion(Hash("A" * 128), BackendName("b"))
    for number in range(40_000)
}
READERS = 8


async def opened(client: Client, form: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = client.base.removeprefix("http://").split(":")
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
    plain.connect((host, int(port)))
    reader, writer = await asyncio.open_connection(sock=plain, limit=PIECE)
    target = "/openapi/changes?kind=publications"
    writer.write(f"GET {target} HTTP/1.1\r\nHost: a\r\nAccept: {form}\r\n\r\n".encode())
    return reader, writer


def parts(client: Client) -> tuple[Followers, Connections]:
    connections = client.app.server._connections
    assert client.app.history is not None
    assert connections is not None
    return client.app.history.followers, connections


@pytest.mark.long
@pytest.mark.parametrize("form", ["text/event-stream", "application/cbor-seq"])
async def test_those_who_read_nothing_share_one_copy(tmp_path: Path, form: str) -> None:
    async with service() as client:
        await client.says_ready()
        followers, connections = parts(client)
        followers.note_published(VERSIONS)
        clients = [await opened(client, form) for _ in range(READERS)]
        await client.until(lambda: len(followers) == READERS, "followers")
        await client.until(lambda: all(one.outgoing.is_paused for one in connections._open), "unread")
        await client.until(lambda: len(connections.unread._bodies) == 1, "one copy")
        assert 6_000_000 < connections.unread.bytes < 9_000_000
        for one in connections._open:
            assert one.transport is not None
            assert one.transport.get_write_buffer_size() <= PIECE + 100
        gone = [weakref.ref(one) for one in followers._followers]
        gc.collect()
        gc.disable()
        try:
            for _, writer in clients:
                writer.close()
            await client.until(lambda: not len(followers) and not connections._open, "left")
            assert connections.unread.bytes == 0
            await client.until(lambda: not any(one() for one in gone), "freed without the collector")
        finally:
            gc.enable()


async def test_those_who_ask_and_leave_share_one_copy_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(stream, "KEPT", 2.0)
    monkeypatch.setattr(
        stream, "write_event", lambda event, form: made.append(event.name) or write_event(event, form)
    )
    async with service() as client:
        await client.says_ready()
        followers, _ = parts(client)
        followers.note_published(VERSIONS)
        for _ in range(READERS):
            reader, writer = await opened(client, "application/cbor-seq")
            await reader.readexactly(PIECE)
            writer.close()
            await client.until(lambda: not len(followers), "left")
        assert made.count("publications") == 1
        await asyncio.sleep(2.5)
        reader, writer = await opened(client, "application/cbor-seq")
        await reader.readexactly(PIECE)
        writer.close()
        assert made.count("publications") == 2


async def test_large_event_comes_whole_in_every_form(tmp_path: Path) -> None:
    async with service() as client:
        await client.says_ready()
        followers, _ = parts(client)
        some = dict(list(VERSIONS.items())[:3000])
        followers.note_published(some)
        wanted = {name: {"hash": "A" * 128, "backend": "b"} for name in some}
        for form in ("text/event-stream", "application/jsonl", "application/cbor-seq"):
            reader, writer = await opened(client, form)
            await reader.readuntil(b"\r\n\r\n")
            body = b""
            async with asyncio.timeout(DEADLINE):
                while len(body) < 2 or not _is_whole(body, form):
                    size = int(await reader.readline(), 16)
                    body += (await reader.readexactly(size + 2))[:-2]
            assert _value(body, form) == wanted
            writer.close()


def _is_whole(body: bytes, form: str) -> bool:
    if form == "application/cbor-seq":
        return len(body) > 1 and body.endswith(b"backendab")
    return body.rstrip(b"\n") != body and b"{" in body


def _value(body: bytes, form: str) -> object:
    if form == "application/cbor-seq":
        return cbor2.load(io.BytesIO(body[1:]))["data"]
    if form == "application/jsonl":
        return orjson.loads(body)["data"]
    return orjson.loads(body.rpartition(b"data: ")[2])
