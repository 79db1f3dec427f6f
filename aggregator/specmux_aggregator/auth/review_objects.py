"""TokenReview and SubjectAccessReview: the posted objects and their answers. Pure.

A malformed answer is a Failure, never permission.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from specmux_aggregator.auth.users import User, proven
from specmux_aggregator.model.failure import Cause, Failure
from specmux_converters.json_values import mapping

TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclass(frozen=True, slots=True)
class TokenVerdict:
    user: User | None
    """None: the token identifies nobody."""
    is_final: bool = True
    """Whether the reviewer met no error, so that the result may be cached."""


@dataclass(frozen=True, slots=True)
class AccessVerdict:
    is_allowed: bool
    is_final: bool = True


def token_review(token: str, audiences: Sequence[str]) -> bytes:
    spec: dict[str, Any] = {"token": token}
    if audiences:
        spec["audiences"] = list(audiences)
    return orjson.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec})


def access_review(user: User, path: str, verb: str = "get") -> bytes:
    spec: dict[str, Any] = {"user": user.name, "nonResourceAttributes": {"path": path, "verb": verb}}
    if user.uid:
        spec["uid"] = user.uid
    if user.groups:
        spec["groups"] = list(user.groups)
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra}
    return orjson.dumps(
        {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    )


def token_verdict(body: bytes, audiences: Sequence[str]) -> TokenVerdict | Failure:
    status = _status(body)
    if status is None:
        return _no_review("TokenReview")
    if status.get("authenticated") is not True:
        return TokenVerdict(None, is_final=not status.get("error"))
    # An apiserver without audience support returns none: it checked its own audience, not ours.
    if audiences and not set(audiences) & set(_texts(status.get("audiences")) or ()):
        return TokenVerdict(None)
    user = _user(status.get("user"))
    return _no_review("TokenReview") if user is None else TokenVerdict(user)


def access_verdict(body: bytes) -> AccessVerdict | Failure:
    status = _status(body)
    if status is None or not isinstance(status.get("allowed"), bool):
        return _no_review("SubjectAccessReview")
    is_allowed = status["allowed"] and status.get("denied") is not True
    return AccessVerdict(is_allowed, is_final=is_allowed or not status.get("evaluationError"))


def _status(body: bytes) -> dict[str, Any] | None:
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    status = mapping(review).get("status")
    return status if isinstance(status, dict) else None


def _user(found: object) -> User | None:
    if not isinstance(found, dict):
        return None
    name, uid = found.get("username"), found.get("uid", "")
    groups, extra = _texts(found.get("groups")), found.get("extra")
    if not isinstance(name, str) or not name or not isinstance(uid, str) or groups is None:
        return None
    if not isinstance(extra, dict | None):
        return None
    values = {key: _texts(listed) for key, listed in (extra or {}).items()}
    told = {key: listed for key, listed in values.items() if listed is not None}
    return proven(name, uid, groups, told) if len(told) == len(values) else None


def _texts(found: object) -> tuple[str, ...] | None:
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        return None
    return tuple(found)


def _no_review(kind: str) -> Failure:
    return Failure(Cause.BAD_BODY, f"the answer is no {kind}")
