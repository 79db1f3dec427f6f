"""Bad requests on raw sockets: refused in words or by closing; no 500, no traceback, one line each."""

from __future__ import annotations

import itertools
import logging
import random
import re
from collections.abc import Iterator

import orjson
import pytest

from data.bent_bytes import bent
from running.serving import TIERS, Running, eventually, request, running

METHODS = [
    "",
    " ",
    "get",
    "Get",
    "GE T",
    "G\x00T",
    "GET\t",
    "\x7fGET",
    "BREW",
    "X" * 5000,
    "{}",
    "GET\r",
    "\u00e9",
]
TARGETS = [
    "",
    " ",
    "a",
    "//",
    "\x00",
    "/\x00",
    "/a b",
    "/\x7f",
    "/\r",
    "\\",
    "http://",
    "http:///a",
    "http:/a",
    "/\xff",
]
VERSIONS = [
    "",
    "HTTP",
    "HTTP/",
    "HTTP/1",
    "HTTP/1.",
    "HTTP/.1",
    "HTTP/1.2",
    "HTTP/2.0",
    "HTTP/3.0",
    "HTTP/9.9",
    "http/1.1",
]
VERSIONS += [
    "HTTP/1.1 ",
    " HTTP/1.1",
    "HTTP/1.1x",
    "HTTP/11",
    "HTTP/-1.1",
    "HTTP/1,1",
    "HTTPS/1.1",
    "HTTP/1.1.1",
    "HTTP/0.9",
]
FIELDS = [
    ": no name",
    "no colon",
    "Space : x",
    " Leading: x",
    "\tTab: x",
    "N\x00l: x",
    "Nul: \x00",
    "Nul: a\x00b",
    "Cr: a\rb",
    "Bell: \x07",
    "Del: \x7f",
    "Esc: \x1b[31m",
    "N\u00e4me: x",
    "(comment): x",
    "a@b: x",
    "a/b: x",
    'a"b: x',
    "Host: a b",
    "Host: a/b",
    "Host: a\\b",
    "Host: [::1",
    "Host: a:b",
    "Host: <script>",
    "Host: a,b",
    "Host: other",
    "Content-Length: -1",
    "Content-Length: +1",
    "Content-Length: x",
    "Content-Length: 1x",
    "Content-Length: 0x10",
    "Content-Length: 1 1",
    "Content-Length: 1, 2",
    "Content-Length: 99999999999999999999999999",
    "Content-Length: ",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: gzip",
    "Transfer-Encoding: \x0bchunked",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 1",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Content-Length: 1\r\nContent-Length: 2",
    "Content-Length: 1\r\nContent-Length: 1",
    "Folded: a\r\n b",
    "Sec-WebSocket-Key1: x",
    "Expect: tea",
    "X" * 9000 + ": x",
    "X: " + "x" * 9000,
]
CHUNKS = [
    "x\r\n",
    "-1\r\n",
    "1\r\nab\r\n",
    "1;\x00\r\na\r\n",
    "ffffffffffffffffff\r\n",
    "\r\n",
    "0x1\r\na\r\n",
    "1\na\n",
]
GARBAGE = [
    b"\x00",
    b"\xff" * 100,
    b"\r",
    b"\n\n\n\nGET",
    b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x80\x2e\x01\x00\x02",
    b"SSH-2.0-OpenSSH_9.9\r\n",
    b"*1\r\n$4\r\nPING\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"GET /a HTTP/1.1\nHost: a\n\n",
    b"GET /a HTTP/1.1\r\nHost: a\n\r\n",
    b"GET /a HTTP/1.1\rHost: a\r\r",
    b"A" * 100_000,
    b"GET /" + b"A" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /a?hash=" + b"A" * 65_536 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * 500 + b"\r\n",
    b"GET /a HTTP/1.1\r\nHost: a\r\n" + b"X" * 100_000,
]


def line(method: str = "GET", target: str = "/a", version: str = "HTTP/1.1", *fields: str) -> bytes:
    return "\r\n".join([f"{method} {target} {version}", "Host: a", *fields, "", ""]).encode("latin-1")


MALFORMED: list[bytes] = [
    *(line(method=method) for method in METHODS),
    *(line(target=target) for target in TARGETS),
    *(line(version=version) for version in VERSIONS),
    *(line("GET", "/a", "HTTP/1.1", field) for field in FIELDS),
    *(line("POST", "/a", "HTTP/1.1", field) for field in FIELDS),
    *(line("GET", "/a", "HTTP/1.1", "Transfer-Encoding: chunked") + chunk.encode() for chunk in CHUNKS),
    *(
        f"{method} {target}\r\n\r\n".encode("latin-1")
        for method, target in itertools.product(METHODS[:3], TARGETS[:6])
    ),
    *(b"GET /a HTTP/1.1\r\n" + field.encode("latin-1") + b"\r\n\r\n" for field in FIELDS[:24]),
    *GARBAGE,
]


@pytest.fixture(scope="module", params=TIERS)
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    with running(request.param) as started:
        yield started


def answers(received: bytes) -> list[tuple[int, bytes]]:
    """Status and body of each answer; fails on bytes that are none."""
    found = []
    rest = received.removesuffix(b"<reset>")
    while rest:
        head, end, rest = rest.partition(b"\r\n\r\n")
        assert end, rest
        status = re.match(rb"HTTP/1\.1 (\d{3}) ", head)
        length = re.search(rb"\r\nContent-Length: (\d+)", head)
        assert status and length, head
        found.append((int(status[1]), rest[: int(length[1])]))
        rest = rest[int(length[1]) :]
    return found


def test_there_are_enough_bad_requests() -> None:
    assert len(set(MALFORMED)) >= 200


def test_bad_requests_are_refused_in_words(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    before, refused = server.counts.malformed, 0
    for sent in MALFORMED:
        caplog.clear()
        received = server.exchange(sent, half_close=True)
        for status, body in answers(received):
            if status in (400, 417, 505):
                refused += 1
                assert orjson.loads(body)["kind"] == "Status"
                assert orjson.loads(body)["code"] == status
                assert b"\r\nConnection: close\r\n" in received
            else:
                # What is odd but well formed is for the service: an unusual target, a body nobody wants.
                assert status in (200, 405), (sent[:200], status)
        lines = [text for text in caplog.messages if not text.endswith("malformed requests were not logged")]
        assert len(lines) <= 1, (sent[:200], caplog.text)
        assert not any(record.exc_info for record in caplog.records), sent[:200]
    assert refused >= 150
    eventually(lambda: server.counts.malformed - before == refused)
    assert b" 200 OK" in server.exchange(request(close=True))


def test_bad_requests_leave_no_credential_in_the_log(
    server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.exchange(request("/a", "Authorization: Bearer s3cret" + "x" * 9000), half_close=True)
    server.exchange(request("/a", "Authorization: Bearer s3cret\x00"), half_close=True)
    server.exchange(request("/a?token=s3cret" + "x" * 9000), half_close=True)
    server.exchange(request("/broken?token=s3cret"), half_close=True)
    assert "s3cret" not in caplog.text
    assert "Traceback" in caplog.text  # of the service's bug, the one thing that deserves it


def test_generated_garbage_never_breaks_the_server(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    """Well-formed requests with a few bytes changed, cut or doubled; the seed makes a failure repeatable."""
    caplog.set_level(logging.WARNING)
    choice = random.Random(20_26)
    whole = (
        request("/a?hash=1", "Accept: application/json", "Content-Length: 3")
        + b"abc"
        + request("/b", close=True)
    )
    for _ in range(300):
        sent = bent(whole, choice)
        for status, _ in answers(server.exchange(sent, half_close=True)):
            assert status in (200, 304, 400, 405, 417, 505), sent
    assert not caplog.records, caplog.text
