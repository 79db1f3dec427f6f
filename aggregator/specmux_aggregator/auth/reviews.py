"""Ask the cluster who owns a token, and whether a user may read a path.

Nothing is cached here. Whether reviews work is always known: at the start and after each failure, both kinds
are tried with an invalid token and user until they succeed. Only the cluster's own behaviour counts as
failure: no client can make the service seem out of order.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Any, Final, TypeVar

import orjson

from specmux_aggregator.auth.fair_queue import TooManyWait, Turns
from specmux_aggregator.auth.users import ANONYMOUS, UNAUTHENTICATED, User, authenticated_user
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.upstream.client import BackendClient
from specmux_converters.json_values import mapping

# A malformed answer is a Failure, never permission.

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
    return authenticated_user(name, uid, groups, told) if len(told) == len(values) else None


def _texts(found: object) -> tuple[str, ...] | None:
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        return None
    return tuple(found)


def _no_review(kind: str) -> Failure:
    return Failure(Cause.BAD_BODY, f"the answer is no {kind}")


logger = logging.getLogger(__name__)

V = TypeVar("V", TokenVerdict, AccessVerdict)

AT_ONCE: Final = 8
"""Concurrent reviews of one kind. Kinds are independent: a flood of invalid tokens does not lock out known
users."""

OF_ONE_ADDRESS: Final = 6
"""Concurrent reviews for clients of one address."""

WAITING: Final = 128
"""Reviews of one address that may wait."""

WAIT: Final = 5.0
"""Seconds that a review waits for its turn."""

OURS: Final = b""
"""The address under which the service's own trials count."""

ANSWER_MAX: Final = 1024 * 1024
"""Bytes of the largest answer to a review."""

RETRY_MIN: Final = 0.5
RETRY_MAX: Final = 10.0
"""Initial and longest pause in seconds between trials while reviews fail."""

NOBODY: Final = User(ANONYMOUS, groups=(UNAUTHENTICATED,))


class Review(StrEnum):
    """The kinds of reviews; also a metric label."""

    TOKEN = "token"  # noqa: S105 - a kind of review
    ACCESS = "access"


class Reviews:
    """Sends reviews to one cluster. Owns ``client``."""

    def __init__(self, client: BackendClient, metrics: Metrics, *, audiences: Sequence[str] | None) -> None:
        self._client = client
        self._metrics = metrics
        self._audiences = tuple(audiences or ())
        self._turns = {kind: Turns(AT_ONCE, of_one=OF_ONE_ADDRESS, waiting_of_one=WAITING) for kind in Review}
        self._proven: set[Review] = set()
        self._failures: dict[Review, Failure] = {}
        self._failed = asyncio.Event()
        self._failing_since: float | None = None
        """Monotonic seconds since when reviews fail, after both kinds had worked."""
        self._metrics.auth.is_up.set(0)

    async def token(self, token: str, *, address: bytes = OURS) -> TokenVerdict | Failure:
        """``address``: of the client on whose behalf it is asked; each has its share."""
        return await self._ask(
            Review.TOKEN,
            address,
            TOKEN_REVIEWS,
            token_review(token, self._audiences),
            lambda answer: token_verdict(answer, self._audiences),
        )

    async def access(
        self, user: User, path: str, *, verb: str = "get", address: bytes = OURS
    ) -> AccessVerdict | Failure:
        return await self._ask(
            Review.ACCESS, address, ACCESS_REVIEWS, access_review(user, path, verb), access_verdict
        )

    def complaint(self) -> str | None:
        for kind in Review:
            if kind in self._failures:
                return f"the cluster's {kind} review fails ({self._failures[kind].cause})"
            if kind not in self._proven:
                return f"the cluster's {kind} review was not tried yet"
        return None

    def failing_for(self) -> float:
        """Seconds since when reviews that had worked fail; infinite if they work or never did."""
        return inf if self._failing_since is None else time.monotonic() - self._failing_since

    async def run(self) -> None:
        """Try both kinds until they work, and again after each failure; forever."""
        while True:
            await self._try_until_proven()
            self._failed.clear()
            if self.complaint() is None:
                await self._failed.wait()

    async def close(self) -> None:
        await self._client.close()

    async def _try_until_proven(self) -> None:
        pause = RETRY_MIN
        while True:
            verdicts = await asyncio.gather(
                self.token(secrets.token_urlsafe(16)), self.access(NOBODY, "/openapi/v3")
            )
            for kind, verdict in zip(Review, verdicts, strict=True):
                if isinstance(verdict, Failure):
                    self._note(kind, verdict)
            if self.complaint() is None:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY_MAX)

    async def _ask(
        self,
        kind: Review,
        address: bytes,
        path: str,
        review: bytes,
        read: Callable[[bytes], V | Failure],
    ) -> V | Failure:
        turns = self._turns[kind]
        try:
            async with asyncio.timeout(WAIT):
                await turns.take(address)
        except (TimeoutError, TooManyWait):
            self._metrics.auth.reviews.labels(kind.value, "crowded").inc()
            return Failure(Cause.THROTTLED, "too many reviews were under way, or waited, of this address")
        started = time.monotonic()
        try:
            verdict = await self._review(self._client.review(path, review, max_bytes=ANSWER_MAX), read)
        finally:
            turns.give_back(address)
        self._metrics.auth.review_seconds.labels(kind.value).observe(time.monotonic() - started)
        result = "failed" if isinstance(verdict, Failure) else "answered"
        self._metrics.auth.reviews.labels(kind.value, result).inc()
        # A cluster's answer to an odd question (400, 413, 422) says nothing about the next one.
        if not isinstance(verdict, Failure) or verdict.cause is not Cause.UNEXPECTED_STATUS:
            self._note(kind, verdict if isinstance(verdict, Failure) else None)
        return verdict

    @staticmethod
    async def _review(
        answer: Awaitable[bytes | Failure], read: Callable[[bytes], V | Failure]
    ) -> V | Failure:
        body = await answer
        return body if isinstance(body, Failure) else read(body)

    def _note(self, kind: Review, failure: Failure | None) -> None:
        before = self._failures.get(kind)
        if failure is None:
            self._proven.add(kind)
            if self._failures.pop(kind, None) is not None:
                logger.info("authentication: %s reviews are answered again", kind)
        else:
            self._failures[kind] = failure
            self._failed.set()
            if before is None or before.cause is not failure.cause:
                logger.error(
                    "authentication: %s reviews fail, nobody new is let in: %s: %s",
                    kind,
                    failure.cause,
                    failure.detail,
                )
        if not self._failures:
            self._failing_since = None
        elif self._failing_since is None and len(self._proven) == len(Review):
            self._failing_since = time.monotonic()
        self._metrics.auth.is_up.set(0 if self.complaint() else 1)
