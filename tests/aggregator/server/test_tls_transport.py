"""The transport that encrypts: whole answers to whoever asked, however the bytes come and go."""

from __future__ import annotations

import asyncio
import random
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from specmux_aggregator.server.tls_transport import RECEIVE, Records, TLSTransport

NAME = "127.0.0.1"
BODY = random.Random(7).randbytes(100_000)


class Wire(asyncio.Transport):
    """A plain transport in memory. ``is_full``: nothing of what is written leaves."""

    max_size: int
    """Bytes of a read, as asyncio's transport has it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_full = self.is_paused = self.is_gone = False

    def write(self, data: Any) -> None:
        assert not self.is_gone
        self.written += data

    def get_write_buffer_size(self) -> int:
        return len(self.written) if self.is_full else 0

    def is_closing(self) -> bool:
        return self.is_gone

    def close(self) -> None:
        self.is_gone = True

    abort = close

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("192.0.2.1", 1) if name == "peername" else default


class Echo(asyncio.Protocol):
    """Says what it hears, and writes down what happened."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.heard = b""
        self.events: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        self.heard += data
        self.transport.write(data)

    def eof_received(self) -> None:
        self.events.append("eof")

    def connection_lost(self, exc: BaseException | None) -> None:
        self.events.append("lost")


class Listener:
    """Takes every handshake."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.records = Records()
        self.context = context
        self.apps: dict[TLSTransport, Echo] = {}
        self.lost: list[TLSTransport] = []

    def begin(self, transport: TLSTransport, peer: object) -> ssl.SSLContext:
        assert peer == ("192.0.2.1", 1)
        return self.context

    def succeed(self, transport: TLSTransport, tls: ssl.SSLObject) -> asyncio.Protocol:
        return self.apps.setdefault(transport, Echo())

    def answer_misdirected(self) -> bytes:
        return b"HTTP/1.1 400 Bad Request\r\n\r\n"

    def end(self, transport: TLSTransport) -> None:
        self.lost.append(transport)


class Pair:
    """A client, and the server's side of its connection."""

    def __init__(self, listener: Listener, trust: ssl.SSLContext) -> None:
        self._listener = listener
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = trust.wrap_bio(self._in, self._out, server_hostname=NAME)
        self.wire = Wire()
        self.server = TLSTransport(listener)
        self.server.connection_made(self.wire)
        self.unsent = bytearray()
        self.heard = b""

    @property
    def app(self) -> Echo:
        return self._listener.apps[self.server]

    def shake(self) -> None:
        while True:
            try:
                self.client.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.send()
                self.take()
        self.send()
        self.take()

    def say(self, data: bytes) -> None:
        """Encrypt; ``send`` hands it over."""
        self.client.write(data)
        self.unsent += self._out.read()

    def send(self, size: int | None = None) -> None:
        self.unsent += self._out.read()
        data = bytes(self.unsent[:size])
        del self.unsent[: len(data)]
        for begin in range(0, len(data), self.wire.max_size):
            self.server.data_received(data[begin : begin + self.wire.max_size])
        assert not self._listener.records.incoming.pending
        assert not self._listener.records.outgoing.pending

    def take(self) -> None:
        self._in.write(bytes(self.wire.written))
        self.wire.written.clear()

    def listen(self) -> bytes:
        """Everything that was said so far; b"" for the end is not told apart from silence."""
        self.take()
        try:
            while data := self.client.read(1 << 16):
                self.heard += data
        except ssl.SSLWantReadError:
            pass
        return self.heard


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    ca = trustme.CA()
    file = tmp_path_factory.mktemp("tls") / "tls.pem"
    ca.issue_cert(NAME).private_key_and_cert_chain_pem.write_to_path(Path(file))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ca.configure_trust(client)
    return server, client


@pytest.fixture
def pair(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> Pair:
    made = Pair(Listener(contexts[0]), contexts[1])
    made.shake()
    return made


def test_connections_that_share_buffers_hear_nothing_of_each_other(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    chance = random.Random(16)
    listener = Listener(contexts[0])
    pairs = [Pair(listener, contexts[1]) for _ in range(20)]
    for one in pairs:
        one.shake()
    said = [b"" for _ in pairs]
    for _ in range(1500):
        number = chance.randrange(len(pairs))
        one = pairs[number]
        if len(one.unsent) < 4000:
            data = (b"%d:" % number) * chance.randrange(1, 400)
            one.say(data)
            said[number] += data
        one.send(chance.randrange(1, 6000))
    for number, one in enumerate(pairs):
        one.send()
        assert one.listen() == said[number]
        assert one.app.heard == said[number]


async def turns() -> None:
    """More than any test here needs."""
    for _ in range(200):
        await asyncio.sleep(0)


def test_many_records_come_in_order(pair: Pair) -> None:
    said = [random.Random(n).randbytes(n * 700) for n in range(1, 60)]
    for data in said:
        pair.say(data)
    pair.send()
    assert pair.listen() == b"".join(said)


async def test_nothing_is_heard_once_it_was_closed(pair: Pair) -> None:
    pair.say(BODY)
    pair.send(2 * RECEIVE)
    pair.server.close()
    heard = len(pair.app.heard)
    pair.send()
    await turns()
    assert 0 < len(pair.app.heard) == heard


async def test_end_that_is_followed_by_more_is_the_end(pair: Pair) -> None:
    pair.say(b"last words")
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.unwrap()
    pair.unsent += pair._out.read() + BODY
    pair.send()
    await turns()
    assert pair.app.heard == b"last words"
    assert pair.app.events == ["made", "eof"]


def test_large_writes_come_whole(pair: Pair) -> None:
    data = random.Random(1).randbytes(300_000)
    pair.app.transport.write(memoryview(data))
    pair.app.transport.write(b"")
    pair.app.transport.write(bytearray(b"end"))
    assert pair.listen() == data + b"end"


async def test_nothing_is_delivered_while_reading_is_paused(pair: Pair) -> None:
    pair.server.pause_reading()
    assert pair.wire.is_paused
    pair.say(b"a" * 20_000)
    pair.say(b"b")
    pair.send()
    assert pair.app.heard == b""
    assert not pair.server.is_reading()
    pair.server.resume_reading()
    assert pair.app.heard == b""  # whoever resumes is not called from within
    await turns()
    assert not pair.wire.is_paused
    assert pair.app.heard == b"a" * 20_000 + b"b"


async def test_end_that_comes_while_reading_is_paused_is_told_after_the_data(pair: Pair) -> None:
    pair.server.pause_reading()
    pair.say(b"last words")
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.unwrap()
    pair.send()
    assert pair.app.events == ["made"]
    pair.server.resume_reading()
    await asyncio.sleep(0)
    assert pair.app.heard == b"last words"
    assert pair.app.events == ["made", "eof"]
    assert pair.wire.is_gone


def test_server_says_that_it_ends(pair: Pair) -> None:
    pair.app.transport.write(b"bye")
    pair.server.close()
    pair.server.close()
    assert pair.wire.is_gone
    assert pair.listen() == b"bye"
    assert pair.client.read(1) == b""  # an end, and no connection that was cut
    pair.app.transport.write(b"more")
    assert not pair.wire.written


def test_bytes_that_are_no_tls_end_the_connection_with_an_alert(pair: Pair) -> None:
    pair.say(b"good")
    pair.send()
    pair.say(b"altered on the way")
    pair.unsent[10] ^= 1
    pair.send()
    assert pair.wire.is_gone
    assert pair.app.heard == b"good"
    with pytest.raises(ssl.SSLError, match=r"(?i)alert|bad record mac"):
        pair.listen()
        pair.client.read(1)
    pair.server.connection_lost(None)
    assert pair.app.events == ["made", "lost"]


def test_handshake_that_fails_is_told_and_ended(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    listener = Listener(contexts[0])
    pair = Pair(listener, contexts[1])
    pair.server.data_received(b"EHLO a\r\n")
    assert pair.wire.is_gone
    assert not listener.records.incoming.pending
    pair.server.connection_lost(None)
    assert listener.lost == [pair.server]
    other = Pair(listener, contexts[1])
    other.shake()
    other.say(b"unharmed")
    other.send()
    assert other.listen() == b"unharmed"


def test_plain_http_is_answered_in_plain_text_alone(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    listener = Listener(contexts[0])
    pair = Pair(listener, contexts[1])
    pair.server.data_received(b"GET / HTTP/1.1\r\n\r\n")
    assert pair.wire.is_gone
    assert pair.wire.written == listener.answer_misdirected()
    assert not listener.records.incoming.pending
    assert not listener.records.outgoing.pending


class Contradicting:
    """OpenSSL's side of a connection, which has a word of its own to say to everything that comes."""

    WORD = b"no"

    def __init__(self, tls: ssl.SSLObject, outgoing: ssl.MemoryBIO) -> None:
        self._tls = tls
        self._outgoing = outgoing

    def read(self, size: int) -> bytes:
        self._outgoing.write(self.WORD)
        return self._tls.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tls, name)


@pytest.mark.parametrize("is_full", [False, True])
def test_what_openssl_says_of_itself_goes_to_no_other_client(pair: Pair, is_full: bool) -> None:
    records = pair.server._handshakes.records
    pair.server._tls = Contradicting(pair.server._tls, records.outgoing)  # type: ignore[assignment]
    pair.wire.written += b"before"
    pair.wire.is_full = is_full
    pair.server.data_received(b"\x17\x03\x03")  # the begin of a record
    assert not records.outgoing.pending
    assert pair.wire.is_gone is is_full, "who does not read makes us hold every word"
    assert pair.wire.written == (b"before" if is_full else b"before" + Contradicting.WORD)
