"""Which header fields go on, and which end here."""

from __future__ import annotations

import pytest

from specmux_aggregator.proxy.header_fields import (
    answer_fields,
    has_other_coding,
    hops,
    resource_fields,
    swagger_answer_fields,
    swagger_fields,
    wants_upgrade,
)

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

HOP_BY_HOP = [
    ("Connection", "close, X-Mine"),
    ("X-Mine", "1"),
    ("Keep-Alive", "timeout=5"),
    ("Proxy-Authenticate", "Basic"),
    ("Proxy-Authorization", "Basic eA=="),
    ("Proxy-Connection", "keep-alive"),
    ("TE", "trailers"),
    ("Trailer", "X-Sum"),
    ("Transfer-Encoding", "chunked"),
    ("Upgrade", "h2c"),
    ("HTTP2-Settings", "AAMAAABk"),
]


def test_hop_by_hop_fields_end_here_both_ways() -> None:
    passed = [("Accept", "a"), ("Authorization", "Bearer t")]
    assert resource_fields([*HOP_BY_HOP, *passed], client=None) == [*passed, ("Via", "1.1 specmux")]
    raw = [(name.encode(), value.encode()) for name, value in [*HOP_BY_HOP, *passed]]
    assert answer_fields(raw) == [*passed, ("Via", "1.1 specmux")]


@pytest.mark.parametrize(
    "name",
    [
        "X-Remote-User",
        "x-remote-group",
        "X-REMOTE-EXTRA-scopes",
        "X_Remote_User",
        "X.Remote-User",
        "X_Real_IP",
        "Transfer_Encoding",
        "Content_Length",
        "Cookie",
        "Forwarded",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Real-IP",
        "Host",
        "Content-Length",
        "Expect",
    ],
)
def test_what_could_speak_for_somebody_else_is_dropped(name: str) -> None:
    assert resource_fields([(name, "1")], client=None) == [("Via", "1.1 specmux")]


def test_address_of_the_connection_is_told_and_no_other() -> None:
    given = [("X-Forwarded-For", "10.0.0.1"), ("Via", "1.0 other")]
    assert resource_fields(given, client="192.0.2.7") == [
        ("Via", "1.0 other"),
        ("Via", "1.1 specmux"),
        ("X-Forwarded-For", "192.0.2.7"),
    ]


def test_impersonation_and_repeated_fields_go_on_as_they_are() -> None:
    given = [("Impersonate-Group", "a"), ("Impersonate-Group", "b"), ("impersonate-user", "ü\t")]
    assert resource_fields(given, client=None)[:-1] == given


@pytest.mark.parametrize("value", ["a\x00b", "a\nb", "\udcff"])
def test_value_that_cannot_be_written_as_it_came_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="X-A"):
        resource_fields([("X-A", value)], client=None)


def test_request_keeps_its_trace() -> None:
    given = [("traceparent", TRACE), ("tracestate", "a=1")]
    assert resource_fields(given, client=None) == [*given, ("Via", "1.1 specmux")]


def test_swagger_is_asked_for_with_nothing_of_the_client_but_what_it_wants() -> None:
    given = [
        ("accept", "application/json"),
        ("Accept-Encoding", "gzip"),
        ("If-None-Match", '"a"'),
        ("if-none-match", '"b"'),
        ("Authorization", "Bearer client"),
        ("Cookie", "a=b"),
        ("traceparent", TRACE),
        ("via", "1.1 other"),
    ]
    assert swagger_fields(given) == [
        ("Accept", "application/json"),
        ("Accept-Encoding", "gzip"),
        ("If-None-Match", '"a", "b"'),
        ("Traceparent", TRACE),
        ("Via", "1.1 other"),
        ("Via", "1.1 specmux"),
    ]
    assert ("Accept-Encoding", "identity") in swagger_fields([])


def test_swagger_is_told_with_its_own_fields_only() -> None:
    raw = [(b"ETag", b'"a"'), (b"Content-Type", b"x"), (b"Set-Cookie", b"a"), (b"WWW-Authenticate", b"Basic")]
    assert swagger_answer_fields(raw) == [("ETag", '"a"'), ("Content-Type", "x"), ("Via", "1.1 specmux")]


def test_answer_loses_cookies_and_other_origins() -> None:
    whole_origin = [b"Alt-Svc", b"Clear-Site-Data", b"Refresh", b"Strict-Transport-Security"]
    raw = [(name, b"a") for name in [b"Set-Cookie", *whole_origin]]
    raw.append((b"Warning", b'299 - "\xe4"'))
    assert answer_fields(raw) == [("Warning", '299 - "\xe4"'), ("Via", "1.1 specmux")]


@pytest.mark.parametrize("field", [(b"X A", b"b"), (b"X-A", b"b\x00"), (b"X-A", b"b\rc")])
def test_answer_with_a_malformed_field_is_refused(field: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match="malformed"):
        answer_fields([field])


def test_only_chunked_is_a_transfer_coding_that_can_be_passed_on() -> None:
    assert not has_other_coding([("A", "gzip")])
    assert not has_other_coding([("Transfer-Encoding", "Chunked")])
    assert has_other_coding([("transfer-encoding", "gzip, chunked")])
    assert has_other_coding([("Transfer-Encoding", "gzip"), ("Transfer-Encoding", "chunked")])


def test_upgrade_is_wanted_only_with_both_fields() -> None:
    assert wants_upgrade([("Connection", "keep-alive, Upgrade"), ("Upgrade", "SPDY/3.1")])
    assert not wants_upgrade([("Upgrade", "SPDY/3.1")])
    assert not wants_upgrade([("Connection", "Upgrade")])


def test_hops_are_counted_over_all_via_fields() -> None:
    assert hops([("Via", "1.1 specmux, 1.0 a (specmux)"), ("via", "1.1 specmux"), ("X", "specmux")]) == 3
    assert hops([("Via", "1.1 specmuxer")]) == 0
