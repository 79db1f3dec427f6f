"""Exchanges with a backend without a session's work around them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import aiohttp
import pytest

from deadline import DEADLINE
from running.exchanges import by_transport, exchanges_that_went_wrong
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.upstream.connections.opening import head_of, is_sendable
from specmux_aggregator.upstream.connections.whole_body import whole_body
from specmux_aggregator.upstream.transport import BackendTransport
from specmux_cache.access.server_access import Credentials


class Scripted:
    """Writes one of ``answers`` for each request, in turn; None: it closes instead. Keeps requests."""

    def __init__(self, answers: Sequence[bytes | None]) -> None:
        self.answers = list(answers)
        self.heads: list[bytes] = []
        self.connections = 0
        self._tasks: set[Any] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._tasks.add(asyncio.current_task())
        try:
            while True:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                answer = self.answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def ended(self) -> None:
        await asyncio.wait_for(asyncio.gather(*self._tasks, return_exceptions=True), DEADLINE)


def ask_all(backend: Scripted, *targets: str, path: str = "", **fields: Any) -> list[Any]:
    """(status, body) of each, or what it raised."""

    async def scenario() -> list[Any]:
        listening = await asyncio.start_server(backend.serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}{path}"
        transport = BackendTransport(
            Backend(name=BackendName("b"), url=url, **fields), polling=PollingSettings()
        )
        answers: list[Any] = []
        for target in targets:
            try:
                async with transport.ask(target, fields={"Accept": "a/b"}, idle_timeout=0.3) as response:
                    body = await whole_body(
                        response.connection, response.content, response.content_length or 0
                    )
                    answers.append((response.status, body))
            except (aiohttp.ClientError, OSError, ValueError) as error:
                answers.append(type(error))
        await transport.close()
        listening.close()
        await backend.ended()
        return answers

    return asyncio.run(scenario())


def answer(status: str, body: bytes = b"", *fields: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status}".encode(), b"Content-Length: %d" % len(body), *fields, b"", body]
    return b"\r\n".join(lines)


OK = answer("200 OK", b"fine")


def test_what_is_sent_is_what_was_said_and_nothing_else() -> None:
    backend = Scripted([OK])
    credentials = Credentials(token="s3cret", remote_user="us")
    assert ask_all(backend, "/openapi/v3?a=%20b", path="/below", credentials=credentials) == [(200, b"fine")]
    line, host, *fields = backend.heads[0].decode().rstrip("\r\n").split("\r\n")
    assert line == "GET /below/openapi/v3?a=%20b HTTP/1.1"
    assert host.startswith("Host: 127.0.0.1:")
    assert fields == [
        "User-Agent: specmux",
        "Accept: a/b",
        "X-Remote-User: us",
        "Authorization: Bearer s3cret",
    ]


def test_a_redirect_is_an_answer() -> None:
    backend = Scripted([answer("301 Moved", b"", b"Location: /elsewhere"), OK])
    assert ask_all(backend, "/a", "/b") == [(301, b""), (200, b"fine")]
    assert backend.connections == 1


def test_interim_answers_are_none() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"
    assert ask_all(Scripted([interim + OK, OK]), "/a", "/b") == [(200, b"fine"), (200, b"fine")]


def test_connection_that_ends_as_it_is_taken_up_is_replaced_once() -> None:
    assert ask_all(Scripted([OK, None, OK]), "/a", "/b") == [(200, b"fine"), (200, b"fine")]
    assert ask_all(Scripted([None, None, OK]), "/a", "/b") == [
        aiohttp.ServerDisconnectedError,
        (200, b"fine"),
    ]


@pytest.mark.parametrize(
    "broken",
    [
        b"not HTTP\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n0123456789",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 200 + b"\r\n",
    ],
)
def test_what_is_no_answer_ends_its_connection(broken: bytes) -> None:
    backend = Scripted([broken, OK])
    assert ask_all(backend, "/a", "/b") == [aiohttp.ClientResponseError, (200, b"fine")]
    assert backend.connections == 2


def test_silence_is_waited_for_as_long_as_was_said() -> None:
    assert ask_all(Scripted([b"HTTP/1.1 200", OK]), "/a", "/b") == [
        aiohttp.SocketTimeoutError,
        (200, b"fine"),
    ]


@pytest.mark.parametrize("target", ["a", "/a b", "/a\r\nX: y", "/a#b", "/\u00e4", "/a\0", ""])
def test_target_that_cannot_stand_in_a_request_line_is_not_sent_as_it_is(target: str) -> None:
    assert not is_sendable(target)


@pytest.mark.parametrize(
    ("name", "value"),
    [("Accept", "a\r\nX: y"), ("Accept", "a\nb"), ("Accept", "\0"), ("A b", "c"), ("A:", "c"), ("", "c")],
)
def test_field_that_would_be_two_is_not_sent(name: str, value: str) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        head_of("/", [(name, value)])


def test_no_exchange_gets_anothers_answer() -> None:
    wrong, strays = asyncio.run(exchanges_that_went_wrong(2_000, by_transport))
    assert strays > 200
    assert wrong == []
