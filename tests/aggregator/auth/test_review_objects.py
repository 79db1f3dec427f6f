"""What is posted to the cluster, and what its answers mean: leave only where they say so without doubt."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_aggregator.auth.reviews import (
    AccessVerdict,
    TokenVerdict,
    access_review,
    access_verdict,
    token_review,
    token_verdict,
)
from specmux_aggregator.auth.users import User, authenticated_user
from specmux_aggregator.model.failure import Failure

ALICE = {"username": "alice", "uid": "1", "groups": ["dev"], "extra": {"scopes": ["a", "b"]}}


def review(**status: Any) -> bytes:
    return orjson.dumps({"kind": "TokenReview", "status": status})


def test_reviews_ask_for_what_is_known() -> None:
    user = User("alice", "1", ("dev",), (("scopes", ("a", "b")),))
    assert orjson.loads(access_review(user, "/openapi/v3")) == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "alice",
            "uid": "1",
            "groups": ["dev"],
            "extra": {"scopes": ["a", "b"]},
            "nonResourceAttributes": {"path": "/openapi/v3", "verb": "get"},
        },
    }
    assert orjson.loads(token_review("t", ()))["spec"] == {"token": "t"}
    assert orjson.loads(token_review("t", ("a",)))["spec"] == {"token": "t", "audiences": ["a"]}


def test_token_of_a_known_user_proves_them() -> None:
    verdict = token_verdict(review(authenticated=True, user=ALICE), ())
    groups = ("dev", "system:authenticated")
    assert verdict == TokenVerdict(User("alice", "1", groups, (("scopes", ("a", "b")),)))


@pytest.mark.parametrize(
    ("status", "is_final"),
    [
        ({}, True),
        ({"authenticated": False}, True),
        ({"authenticated": False, "user": ALICE}, True),
        ({"authenticated": "true", "user": ALICE}, True),
        ({"authenticated": 1, "user": ALICE}, True),
        ({"authenticated": False, "error": "the webhook is down"}, False),
    ],
)
def test_token_proves_nobody_unless_it_is_said(status: dict[str, Any], is_final: bool) -> None:
    assert token_verdict(review(**status), ()) == TokenVerdict(None, is_final)


@pytest.mark.parametrize(
    ("answered", "is_known"),
    [(["a"], True), (["x", "b"], True), (["x"], False), ([], False), (None, False), ("a", False)],
)
def test_token_needs_one_of_the_audiences(answered: object, is_known: bool) -> None:
    verdict = token_verdict(review(authenticated=True, user=ALICE, audiences=answered), ("a", "b"))
    assert isinstance(verdict, TokenVerdict)
    assert (verdict.user is not None) is is_known


@pytest.mark.parametrize(
    "user",
    [None, "alice", {}, {"username": ""}, {"username": 1}, {"username": "a", "groups": "dev"},
     {"username": "a", "groups": [1]}, {"username": "a", "extra": []}, {"username": "a", "extra": {"x": "y"}},
     {"username": "a", "uid": 1}],
)  # fmt: skip
def test_user_of_another_shape_is_a_failure(user: object) -> None:
    assert isinstance(token_verdict(review(authenticated=True, user=user), ()), Failure)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        ({"allowed": True}, AccessVerdict(True)),
        ({"allowed": False}, AccessVerdict(False)),
        ({"allowed": True, "denied": True}, AccessVerdict(False)),
        ({"allowed": False, "evaluationError": "role not found"}, AccessVerdict(False, is_final=False)),
        ({"allowed": True, "evaluationError": "role not found"}, AccessVerdict(True)),
    ],
)
def test_access_is_what_is_said(status: dict[str, Any], verdict: AccessVerdict) -> None:
    assert access_verdict(review(**status)) == verdict


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"status": 1}', b'{"status": {"allowed": "yes"}}']
)
def test_answer_of_another_shape_is_a_failure(body: bytes) -> None:
    assert isinstance(access_verdict(body), Failure)
    if b"allowed" not in body:
        assert isinstance(token_verdict(body, ()), Failure)


def test_everybody_proven_is_authenticated_but_the_anonymous() -> None:
    assert authenticated_user("a", "", (), {}).groups == ("system:authenticated",)
    assert authenticated_user("a", "", ("system:authenticated",), {}).groups == ("system:authenticated",)
    assert authenticated_user("a", "", ("system:unauthenticated",), {}).groups == ("system:unauthenticated",)
    assert authenticated_user("system:anonymous", "", (), {}).groups == ()


TEXTS = st.text(max_size=4)
USERS = st.builds(
    authenticated_user,
    TEXTS,
    TEXTS,
    st.lists(TEXTS, max_size=3).map(tuple),
    st.dictionaries(TEXTS, st.lists(TEXTS, max_size=2).map(tuple), max_size=2),
)


@given(USERS, USERS)
def test_users_share_a_key_only_when_they_are_equal(one: User, two: User) -> None:
    assert (one.key == two.key) is (one == two)


@given(
    st.recursive(
        st.none() | st.booleans() | TEXTS,
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["status", "authenticated", "user", "username", "groups", "allowed"]), inner
            )
        ),
    )
)
def test_no_answer_is_leave_by_accident(answer: Any) -> None:
    token, access = token_verdict(orjson.dumps(answer), ()), access_verdict(orjson.dumps(answer))
    status = answer.get("status") if isinstance(answer, dict) else None
    if isinstance(token, TokenVerdict) and token.user is not None:
        assert status["authenticated"] is True
    if isinstance(access, AccessVerdict) and access.is_allowed:
        assert status["allowed"] is True
