"""Attacks by clients and by backends on a whole service: what each gets, and that all others are served."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest

from deadline import DEADLINE
from fakes.streaming_backend import StreamingBackend, streaming
from running.service import Client, backend, service
from running.wire_client import connected
from specmux_aggregator.config.settings import LimitSettings

ROOT = "/openapi/v3"
GOOD = "/openapi/v3/apis/apps/v1"
LIMITS = LimitSettings(max_root_bytes=4_000_000)
LAST = b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def get(path: str, *fields: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: a", *fields, "", ""]).encode("latin-1")


async def statuses(client: Client, sent: bytes) -> list[int]:
    """Of all answers until the server closes."""
    async with connected(client.base) as wire:
        with contextlib.suppress(ConnectionError):
            await wire.send(sent)
        received = b""
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(DEADLINE):
                while piece := await wire.reader.read(1 << 16):
                    received += piece
    return [int(code) for code in re.findall(rb"(?:^|\n|\})HTTP/1\.1 (\d{3}) ", received)]


CLIENTS: dict[str, tuple[bytes, list[int]]] = {
    "a request line of 100 kB": (get("/" + "a" * 100_000), [400]),
    "a hundred thousand fields": (get(ROOT, *["X: y"] * 100_000), [400]),
    "a field without a colon, for ever": (b"GET / HTTP/1.1\r\n" + b"x" * 500_000, [400]),
    "500 of HEAD in a row": (get(ROOT, method="HEAD") * 500 + LAST, [200] * 501),
    "a body of 2**62 bytes": (get(ROOT, "Content-Length: 4611686018427387904") + b"x" * 1000, [200]),
    "a body of 2**70 bytes": (get(ROOT, "Content-Length: 1180591620717411303424"), [400]),
    "30,000 chunks of a byte": (get(ROOT, "Transfer-Encoding: chunked") + b"1\r\nx\r\n" * 30_000, [200]),
    "a chunk size of 30 digits": (get(ROOT, "Transfer-Encoding: chunked") + b"f" * 30 + b"\r\n", [200]),
    "ranges by the hundred": (get(ROOT, "Range: bytes=" + "0-," * 2_000 + "0-1") + LAST, [200, 200]),
    "5,000 parameters of a query": (get(f"{GOOD}?" + "a=b&" * 1_900) + LAST, [200, 200]),
    "a hash of 8,000 characters": (get(f"{GOOD}?hash=" + "A" * 8_000) + LAST, [400, 200]),
    "weights of thousands of digits": (get(ROOT, "Accept: */*;q=0." + "1" * 7_000) + LAST, [200, 200]),
    "an Accept of empty elements": (get(ROOT, "Accept: " + "," * 8_000) + LAST, [431, 200]),
    "entity tags by the thousand": (get(ROOT, "If-None-Match: " + '"a",' * 1_500) + LAST, [431, 200]),
    "a name and a password in the target": (get("http://u:p@evil/openapi/v3") + LAST, [200, 200]),
    "every dot and slash encoded": (get("/openapi%2fv3/%2e%2e/%2e%2e/etc/passwd") + LAST, [404, 200]),
    "an upgrade to h2c with a request behind it": (
        get(ROOT, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAA") + get(ROOT),
        [200],
    ),
    "TLS where none is spoken": (bytes.fromhex("16030100c8010000c40303") + bytes(200), [400]),
    "a tunnel to nowhere": (b"CONNECT  \r\nHost: a\r\n\r\n", [505]),
    "a preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(1_000), [400]),
}


@pytest.mark.parametrize("attack", CLIENTS)
async def test_client_that_attacks_gets_what_it_should_and_others_are_served(attack: str) -> None:
    sent, expected = CLIENTS[attack]

    async with streaming(StreamingBackend()) as origin, service(backend("a", origin.url)) as client:
        await client.ready()
        assert (await client.get(GOOD))[0] == 200
        for _ in range(2):
            assert await statuses(client, sent) == expected
        assert (await client.get(GOOD))[0] == 200
        await client.until(lambda: client.app.server.stats.in_flight == 0, "nothing is left over")


def answer(body: bytes, *fields: str) -> bytes:
    head = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(head).encode("latin-1") + body


def root(**paths: str) -> bytes:
    return orjson.dumps({"paths": {key: {"serverRelativeURL": url} for key, url in paths.items()}})


BACKENDS: dict[str, tuple[bytes, str]] = {
    "a root of empty lists": (answer(b'{"paths":{},"x":[' + b"[]," * 400_000 + b"0]}"), "too_large"),
    "a root that unpacks to 20 MB": (
        answer(gzip.compress(bytes(20_000_000)), "Content-Encoding: gzip"),
        "too_large",
    ),
    "a root nested 100,000 deep": (answer(b"[" * 100_000), "bad_body"),
    "a number of 100,000 digits": (answer(b'{"paths":' + b"1" * 100_000 + b"}"), "bad_body"),
    "half of a surrogate pair": (answer(b'{"paths":{"\\ud800":{}}}'), "bad_body"),
    "a document elsewhere": (
        answer(root(**{"apis/x.io/v1": "http://169.254.169.254/latest/meta-data"})),
        "bad_root",
    ),
    "a document above the root": (answer(root(**{"apis/x.io/v1": "/openapi/v3/../../secrets"})), "bad_root"),
    "a key that is a path": (answer(root(**{"apis/../../etc": "/openapi/v3/apis/x"})), "bad_root"),
    "a field of 100 kB": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", "bad_body"),
    "fields without end": (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000, "bad_body"),
    "two lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", "bad_body"),
    "a coding of its own": (answer(b"{}", "Content-Encoding: br"), "bad_body"),
    "more than it may send": (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "too_large"),
    "an answer that is none": (b"\x00" * 5_000, "bad_body"),
    "a redirect to a file": (
        b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
        "redirected",
    ),
}


@asynccontextmanager
async def saying_always(said: bytes) -> AsyncIterator[str]:
    """A server that answers everything with these bytes, and closes; its URL."""
    tasks = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(said)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.wait_for(asyncio.gather(*filter(None, tasks)), DEADLINE)


@pytest.mark.parametrize("attack", BACKENDS)
async def test_backend_that_attacks_is_told_apart_and_others_are_served(attack: str) -> None:
    said, cause = BACKENDS[attack]

    async with (
        saying_always(said) as url,
        streaming(StreamingBackend()) as origin,
        service(
            backend("evil", url), backend("good", origin.url), limits=LimitSettings(max_root_bytes=4_000_000)
        ) as client,
    ):
        await client.until(
            lambda: all(item.attempted for item in client.app.publisher.current.observations.values()),
            "both were asked",
        )
        status = (await client.status())["backends"]
        assert (status["evil"]["state"], status["good"]["state"]) == ("failed", "up")
        assert status["evil"]["error"]["cause"] == cause
        assert (await client.get(GOOD))[0] == 200
        assert list(await client.paths()) == ["apis/apps/v1"]
