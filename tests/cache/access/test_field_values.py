"""Tokens that header fields can hold, and hosts that are this machine."""

from __future__ import annotations

import pytest

from specmux_cache.access.server_access import is_bearer_value
from specmux_cache.access.urls import is_loopback


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc.def-_~+/=", True),
        ("a b", False),
        ("", False),
        ("a\r\nX: y", False),
        ("é", False),
        ("\x7f", False),
    ],
)
def test_token_that_a_field_can_hold(text: str, expected: bool) -> None:
    assert is_bearer_value(text) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("localhost.", True),
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("", False),
        (None, False),
    ],
)
def test_host_that_is_this_machine(host: str | None, expected: bool) -> None:
    assert is_loopback(host) is expected
