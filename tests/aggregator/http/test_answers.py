"""Prepared answers: framing that cannot be broken from outside, and time lines that are right."""

from __future__ import annotations

import email.utils

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_aggregator.http.prepared_answer import YEAR, TimeLines, prepare, refusal


def fields(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:-1]
    return dict(line.split(": ", 1) for line in lines)


def test_prepare_writes_status_line_fields_and_length() -> None:
    prepared = prepare(200, [("Content-Type", "text/plain"), ("ETag", '"1"')], b"hello")
    expected = b'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: "1"\r\nContent-Length: 5\r\n'
    assert prepared.head == expected
    assert prepared.body == b"hello"


def test_prepare_keeps_the_length_of_the_body_that_head_does_not_get() -> None:
    dropped = prepare(200, [], b"hello", is_head=True)
    stated = prepare(200, [], is_head=True, content_length=5)
    assert dropped.head == stated.head == prepare(200, [], b"hello").head
    assert dropped.body == stated.body == b""


@pytest.mark.parametrize("status", [204, 304])
def test_prepare_gives_no_length_when_the_status_has_no_content(status: int) -> None:
    assert "Content-Length" not in fields(prepare(status, [("ETag", '"1"')]).head)
    with pytest.raises(ValueError, match="no content"):
        prepare(status, [], b"x")


def test_prepare_writes_zero_length_when_another_status_has_no_body() -> None:
    assert fields(prepare(301, [("Location", "?hash=A")]).head)["Content-Length"] == "0"


def test_prepare_refuses_a_foreign_length_when_the_request_is_not_head() -> None:
    with pytest.raises(ValueError, match="HEAD"):
        prepare(200, [], b"hello", content_length=6)


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: x", "a\nb", "a\rb", "a\x00b", "\x7f", "\u2028"])
def test_prepare_refuses_values_that_break_the_framing(value: str) -> None:
    with pytest.raises(ValueError, match="not a value"):
        prepare(301, [("Location", value)])


@pytest.mark.parametrize("name", ["", "a b", "a:", "a\r\nb", "é", "a\n"])
def test_prepare_refuses_names_that_are_not_tokens(name: str) -> None:
    with pytest.raises(ValueError, match="not a field name"):
        prepare(200, [(name, "x")])


@pytest.mark.parametrize(
    "name", ["Date", "date", "Content-Length", "Expires", "Connection", "Transfer-Encoding"]
)
def test_prepare_refuses_the_fields_that_the_server_writes(name: str) -> None:
    with pytest.raises(ValueError, match="written by the server"):
        prepare(200, [(name, "x")])


@given(st.text(max_size=40), st.text(max_size=40))
def test_prepare_gives_exactly_one_line_per_field_or_refuses(name: str, value: str) -> None:
    try:
        head = prepare(200, [(name, value)]).head
    except ValueError:
        return
    assert head.count(b"\r\n") == head.count(b"\n") == head.count(b"\r") == 3
    assert head.split(b"\r\n")[1] == f"{name}: {value}".encode("latin-1")


def test_refusal_is_a_kubernetes_status() -> None:
    prepared = refusal(400, "BadRequest", "no")
    assert orjson.loads(prepared.body) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "no",
        "reason": "BadRequest",
        "code": 400,
    }


def test_time_lines_are_gmt_and_change_with_the_second() -> None:
    wall = [1_700_000_000.75]
    lines = TimeLines(lambda: wall[0])
    plain, immutable = prepare(200, []), prepare(200, [], is_immutable=True)
    assert lines.end_of_head(plain, 10.0) == b"Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n\r\n"
    expires = fields(b"\r\n" + lines.end_of_head(immutable, 10.0).removesuffix(b"\r\n"))["Expires"]
    assert expires.endswith(" GMT")
    assert email.utils.parsedate_to_datetime(expires).timestamp() == 1_700_000_000 + YEAR
    wall[0] += 0.25
    assert b"22:13:21 GMT" in lines.end_of_head(plain, 10.25)


def test_time_lines_follow_within_a_second_when_the_clock_is_set_back() -> None:
    wall = [1_700_000_000.0]
    lines = TimeLines(lambda: wall[0])
    plain = prepare(200, [])
    assert b"22:13:20 GMT" in lines.end_of_head(plain, 10.0)
    wall[0] -= 3600.0
    assert b"21:13:20 GMT" in lines.end_of_head(plain, 11.0)
