"""Two heads of which the same decides are the same to aiohttp's parser, whatever else stands in them."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from aiohttp import http_parser
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpRequestParser
from aiohttp.http_exceptions import HttpProcessingError
from hypothesis import given
from hypothesis import strategies as st

from running.request_streams import BENDS, FIELDS, METHODS, TARGETS, VERSIONS
from sampling import examples
from specmux_aggregator.server.deciding_head import DECIDING, HEAD_MAX, LINES_MAX, deciding_part
from specmux_aggregator.server.dispatch import request_of
from specmux_aggregator.server.incoming import HEADERS_MAX
from specmux_aggregator.server.refusals import LINE_MAX

PLAIN = b"GET /a HTTP/1.1\r\nHost: a\r\nAccept: x\r\n\r\n"
SMALL = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"


def parsed(data: bytes) -> object:
    """All that the parser says of one request that is whole; None for anything else."""

    async def parse() -> object:
        loop = asyncio.get_running_loop()
        parser = HttpRequestParser(
            BaseProtocol(loop),
            loop,
            2**16,
            max_line_size=LINE_MAX,
            max_field_size=LINE_MAX,
            max_headers=HEADERS_MAX,
        )
        try:
            messages, is_upgraded, rest = parser.feed_data(data)
            after: Any = parser.feed_data(SMALL)[0]
        except HttpProcessingError:
            return None
        if len(messages) != 1 or len(after) != 1 or rest:
            return None
        message = messages[0][0]
        deciding = [item for item in message.headers.items() if item[0].lower() in DECIDING]
        flags = (message.should_close, message.upgrade, message.chunked, message.version, is_upgraded)
        return request_of(message), flags, deciding, messages[0][1].is_eof()

    return asyncio.run(parse())


@pytest.mark.parametrize(
    "line",
    [
        b"Audit-Id: 7b8b7c46",
        b"x:y",
        b"X-Forwarded-For:  10.0.0.1, 10.0.0.2 ",
        b"Acceptance: text/html",
        b"Accept-Language: en",
        b"Hosts: b",
        b"Cookie: a=b",
        b"X-Forwarded-Host: evil",
        b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ],
)
def test_field_that_nobody_reads_does_not_decide(line: bytes) -> None:
    for before in (b"Host: a\r\n", b"Accept: x\r\n", b""):
        at = PLAIN.index(before or b"\r\n\r\n") + (len(before) or 2)
        assert deciding_part(PLAIN[:at] + line + b"\r\n" + PLAIN[at:]) == PLAIN


@pytest.mark.parametrize("name", sorted(DECIDING))
def test_field_that_somebody_reads_decides_in_any_case_of_its_letters(name: str) -> None:
    for shown in (name, name.title(), name.upper()):
        data = PLAIN[:-2] + f"{shown}: 1\r\n\r\n".encode()
        assert deciding_part(data) == data


@pytest.mark.parametrize(
    "bent",
    [
        b" Audit-Id: 1",
        b"Audit-Id : 1",
        b"Audit-Id: \x00",
        b"Audit-Id: \xff",
        b"Audit-Id: 1\n",
        b"Audit-Id: 1\rX: 2",
        b"Audit-Id:",
        b"Audit-Id",
        b": 1",
        b"A" * 65 + b": 1",
        b"X: 1\r\n folded",
    ],
)
def test_line_that_is_bent_stays(bent: bytes) -> None:
    part = deciding_part(PLAIN[:-2] + bent + b"\r\n\r\n")
    assert part != PLAIN


@pytest.mark.parametrize(
    "data",
    [
        b"",
        PLAIN[:-1],
        PLAIN + b"X: y\r\n",
        PLAIN + PLAIN,
        PLAIN + b"\r\n\r\n",
        PLAIN[:-2] + b"X: y\r\n" * LINES_MAX + b"\r\n",
        PLAIN[:-2] + b"X: " + b"y" * HEAD_MAX + b"\r\n\r\n",
    ],
)
def test_what_is_not_one_whole_head_of_a_usual_size_is_not_looked_at(data: bytes) -> None:
    assert deciding_part(data) is None


def test_all_that_aiohttp_takes_once_alone_decides() -> None:
    """A field of which a second one is refused must not go."""
    singles = {
        name.lower() for name in vars(http_parser).get("SINGLETON_HEADERS", ()) if isinstance(name, str)
    }
    assert singles <= DECIDING
    for name in ("User-Agent", "Content-Type", "Server", "ETag", "Max-Forwards", "Content-Location"):
        assert parsed(PLAIN[:-2] + f"{name}: 1\r\n{name}: 2\r\n\r\n".encode()) is None


ORDINARY = (
    "Audit-Id: 1",
    "X: y",
    "x-request-id:2",
    "Cookie: a=b ",
    "traceparent:\t00-1",
    "Accept-Charset: u",
)
BENT = ("X", "X:", " X: y", "X : y", "\tfolded", "X: \xff", "X: \x00", "X: y\n", "", "\rX: y")


@st.composite
def heads(draw: Any) -> bytes:
    chance = random.Random(draw(st.integers(0, 2**32)))
    line = f"{chance.choice(METHODS)} {chance.choice(TARGETS)} {chance.choice(VERSIONS)}"
    fields = ["Host: a"] if chance.randrange(8) else []
    fields += chance.sample(FIELDS, chance.choice((0, 0, 1, 2)))
    fields += chance.sample(ORDINARY, chance.choice((0, 1, 2, 3)))
    fields += chance.sample(BENT, chance.choice((0, 0, 0, 1)))
    chance.shuffle(fields)
    data = "\r\n".join([line, *fields, "", ""]).encode("latin-1")
    if chance.randrange(6) == 0:
        at = chance.randrange(len(data) + 1)
        data = data[:at] + chance.choice(BENDS) + data[at:]
    return data


@examples(1500)
@given(heads())
def test_parser_makes_the_same_of_a_head_and_of_what_decides_of_it(data: bytes) -> None:
    part = deciding_part(data)
    if part is not None and data.startswith((b"GET ", b"HEAD ")):
        assert parsed(part) == parsed(data)


@pytest.mark.long
@examples(300)
@given(st.data())
def test_parser_makes_the_same_of_a_head_with_more_lines_that_do_not_decide(data: Any) -> None:
    lines = PLAIN[:-4].split(b"\r\n")
    for _ in range(data.draw(st.integers(0, LINES_MAX - 5))):
        name = data.draw(st.from_regex(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}", fullmatch=True))
        value = data.draw(st.from_regex(r"[ \t]{0,3}[!-~][\t -~]{0,60}", fullmatch=True))
        lines.insert(data.draw(st.integers(1, len(lines))), f"{name}:{value}".encode())
    head = b"\r\n".join(lines) + b"\r\n\r\n"
    if deciding_part(head) == PLAIN:
        assert parsed(head) == parsed(PLAIN)
