"""The Authorization field: one bearer token, or none at all."""

from __future__ import annotations

import pytest

from specmux_aggregator.auth.authenticator import AuthRefusal, RefusalReason
from specmux_aggregator.auth.bearer import bearer_token, digest


@pytest.mark.parametrize(
    ("field", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("BEARER   abc", "abc"),
        ("Bearer eyJh.eyJz-_.c2ln", "eyJh.eyJz-_.c2ln"),
        ("Bearer abc==", "abc=="),
        ("Bearer a+/~", "a+/~"),
    ],
)
def test_token_is_found(field: str, token: str) -> None:
    assert bearer_token([field]) == token


@pytest.mark.parametrize(
    "field",
    ["", "Bearer", "Bearer ", "Bearer\tabc", "Bearerabc", "Basic abc", "abc", "Bearer a b",
     "Bearer a, Bearer b", "Bearer a=b", "Bearer =", "Bearer \u00e4", "Bearer a\n", "Token abc",
     "Bearer abc,"],
)  # fmt: skip
def test_other_fields_hold_no_token(field: str) -> None:
    refused = bearer_token([field])
    assert isinstance(refused, AuthRefusal)
    assert refused.reason is RefusalReason.NO_CREDENTIALS


def test_missing_field_holds_no_token() -> None:
    refused = bearer_token([])
    assert isinstance(refused, AuthRefusal)
    assert refused.reason is RefusalReason.NO_CREDENTIALS


def test_two_fields_are_malformed_even_when_they_agree() -> None:
    for fields in (["Bearer a", "Bearer a"], ["Bearer a", "Basic b"]):
        refused = bearer_token(fields)
        assert isinstance(refused, AuthRefusal)
        assert refused.reason is RefusalReason.MALFORMED


def test_digest_depends_on_the_key_and_holds_nothing_of_the_token() -> None:
    one, two = digest(b"k" * 32, "token"), digest(b"l" * 32, "token")
    assert one == digest(b"k" * 32, "token")
    assert one != two
    assert len(one) == 32
    assert b"token" not in one
