"""A parsed message as the service sees it; the messages come from the real parser."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.http_exceptions import BadHttpMessage

from specmux_aggregator.http.messages import Request
from specmux_aggregator.server.dispatch import (
    BAD_EXPECTATION,
    BAD_HOST,
    BAD_VERSION,
    is_host,
    refuse_message,
    request_of,
)


def parsed(
    target: str = "/a", *fields: str, version: str = "1.1", host: str = "Host: a"
) -> RawRequestMessage:
    async def parse() -> RawRequestMessage:
        loop = asyncio.get_running_loop()
        parser = HttpRequestParser(BaseProtocol(loop), loop, 2**16)
        head = "\r\n".join([f"GET {target} HTTP/{version}", host, *fields, "", ""])
        messages, _, _ = parser.feed_data(head.encode("latin-1"))
        return messages[0][0]

    return asyncio.run(parse())


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a", "/a", ""),
        ("/a?", "/a", ""),
        ("/a?b=c&d", "/a", "b=c&d"),
        ("/a?b?c", "/a", "b?c"),
        ("/a%2Fb/../%00", "/a%2Fb/../%00", ""),
        ("//evil/a", "//evil/a", ""),
        ("http://other/a?b=%20", "/a", "b=%20"),
        ("http://user@other:1/a", "/a", ""),
        ("http://other", "/", ""),
        ("HTTPS://other/%61", "/%61", ""),
    ],
)
def test_path_and_query_are_as_on_the_wire(target: str, path: str, query: str) -> None:
    request = request_of(parsed(target))
    assert (request.path, request.query) == (path, query)


def test_repeated_fields_are_joined_and_others_ignored() -> None:
    message = parsed(
        "/a", "Accept: a", "ACCEPT: b;q=0.1", 'If-None-Match: "x"', "Cookie: secret", "Authorization: secret"
    )
    assert request_of(message) == Request("GET", "/a", accept="a, b;q=0.1", if_none_match='"x"')


def test_field_that_is_not_utf8_becomes_text_that_can_be_encoded() -> None:
    accept = request_of(parsed("/a", "Accept: \xff\xfe")).accept
    assert accept == "\xff\xfe"
    assert accept.encode()


@pytest.mark.parametrize("target", ["/\xff", "/a?\xff", "/a#\xff", "http://a/\xff", "/\x00", "/a b", "/\x7f"])
def test_target_beyond_visible_ascii_is_refused_by_the_parser(target: str) -> None:
    """What lies behind may take every target for ASCII."""
    with pytest.raises(BadHttpMessage):
        parsed(target)


@pytest.mark.parametrize(
    ("host", "valid"),
    [
        ("", True),
        ("a", True),
        ("a.b-c:80", True),
        ("127.0.0.1:", True),
        ("[::1]", True),
        ("[fe80::1%25eth0]", False),
        ("[::1]:443", True),
        ("a b", False),
        ("a/b", False),
        ("a:b", False),
        ("a:1:2", False),
        ("::1", False),
        ("[::1", False),
        ("a@b", False),
        ("a\n", False),
        ("ä", False),
        ("x" * 300, False),
    ],
)
def test_host_is_a_host_with_an_optional_port(host: str, valid: bool) -> None:
    assert is_host(host) is valid


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        (parsed(), None),
        (parsed(version="1.0"), None),
        (parsed(version="2.0"), BAD_VERSION),
        (parsed(version="0.9"), BAD_VERSION),
        (parsed(host="Host: a b"), BAD_HOST),
        (parsed("/a", "Expect: 100-Continue"), None),
        (parsed("/a", "Expect: tea"), BAD_EXPECTATION),
        (parsed("/a", "Expect: tea", version="1.0"), None),
    ],
    ids=repr,
)
def test_messages_that_never_reach_the_service(message: RawRequestMessage, answer: object) -> None:
    assert refuse_message(message) is answer
