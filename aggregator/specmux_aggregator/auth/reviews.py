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
from enum import StrEnum
from math import inf
from typing import Final, TypeVar

from specmux_aggregator.auth.fair_queue import TooManyWait, Turns
from specmux_aggregator.auth.review_objects import (
    ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    AccessVerdict,
    TokenVerdict,
    access_review,
    access_verdict,
    token_review,
    token_verdict,
)
from specmux_aggregator.auth.users import ANONYMOUS, UNAUTHENTICATED, User
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.upstream.client import BackendClient

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
            verdict = await self._answered(self._client.review(path, review, max_bytes=ANSWER_MAX), read)
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
    async def _answered(
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
