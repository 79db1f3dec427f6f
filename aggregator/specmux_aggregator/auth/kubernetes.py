"""Mode kubernetes: the cluster identifies the owner of a token (TokenReview) and decides what the user may
read (SubjectAccessReview), as for its own extension servers. If the cluster cannot be asked, access is
refused.

Results are cached briefly; of a token only a digest is kept. Errors are not cached. While the cluster is
unreachable, permissions stay valid for ``review_grace`` longer, so its outage does not lock out users
admitted before. Users never admitted are refused. During the outage, permission for a root that clients start
with includes what lies below it; and a user admitted for one root is reviewed ahead for the other roots.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from math import inf
from typing import Final, Generic, TypeVar

from aiohttp.hdrs import AUTHORIZATION
from aiohttp.http import RawRequestMessage

from specmux_aggregator.auth.authenticator import ONCE, AuthRefusal, AuthRequest, RefusalReason
from specmux_aggregator.auth.bearer import bearer_token, digest
from specmux_aggregator.auth.client_certificates import peer_certificate
from specmux_aggregator.auth.front_proxies import FrontProxies
from specmux_aggregator.auth.reviews import Reviews
from specmux_aggregator.auth.users import User
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.server.admission import address_of
from specmux_aggregator.server.protocols import ClientConnection, Permission
from specmux_cache.reading.single_flight import SingleFlight
from specmux_converters.errors import cut

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ReviewEntry(Generic[V]):
    """One value. Its expiry distinguishes it from a later one in its place."""

    __slots__ = ("until", "value")

    def __init__(self, value: V, until: float) -> None:
        self.value = value
        self.until = until


class ReviewCache(Generic[K, V]):
    """Values by key until their expiry. Times are monotonic seconds.

    ``grace``: seconds for which ``get_expired`` still returns an expired value.
    """

    __slots__ = ("_entries", "_grace", "_size")

    def __init__(self, size: int, *, grace: float = 0.0) -> None:
        self._size = size
        self._grace = grace
        self._entries: OrderedDict[K, ReviewEntry[V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K, now: float) -> V | None:
        entry = self.entry(key, now)
        return None if entry is None else entry.value

    def entry(self, key: K, now: float) -> ReviewEntry[V] | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if now >= entry.until:
            if now >= entry.until + self._grace:
                del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry

    def get_expired(self, key: K, now: float) -> V | None:
        """The last value, even if expired, within the grace."""
        entry = self._entries.get(key)
        return None if entry is None or now >= entry.until + self._grace else entry.value

    def forget(self, key: K) -> None:
        _end(self._entries.pop(key, None))

    def put(self, key: K, value: V, *, until: float) -> None:
        _end(self._entries.pop(key, None))
        self._entries[key] = ReviewEntry(value, until)
        if len(self._entries) > self._size:
            _end(self._entries.popitem(last=False)[1])


def _end(entry: ReviewEntry[V] | None) -> None:
    if entry is not None:
        entry.until = -inf


TOKENS: Final = 4096
"""Cached tokens of known users."""

STRANGERS: Final = 1024
"""Cached tokens that identify nobody; separate, so that a flood of them evicts no known user."""

ACCESSES: Final = 16_384
"""Cached users, each with a verb and a path."""

ROOTS: Final = ("/openapi/v3", "/api", "/apis", "/version")
"""The roots that clients start with (the role system:discovery has them all), which stand for what lies
below."""

PATH_MAX: Final = 512
"""Characters of the longest cached path; no path of the service is as long."""

_BAD_TOKEN: Final = AuthRefusal(RefusalReason.BAD_CREDENTIALS, "the bearer token is not accepted")
_NO_REVIEW: Final = AuthRefusal(RefusalReason.UNAVAILABLE, "the cluster cannot be asked who may read this")


class ReviewedPermission:
    """Permission from two reviews: the owner of the token, and read access to the path."""

    __slots__ = ("_access", "_user")

    def __init__(self, user: ReviewEntry[User], access: ReviewEntry[bool]) -> None:
        self._user = user
        self._access = access

    def lasts(self, connection: ClientConnection, now: float) -> bool:
        return now < self._user.until and now < self._access.until


class ReviewedOfNoProxy(ReviewedPermission):
    """The same with front proxies configured: a client with a certificate may speak for another user in
    header fields, so this permission proves only the owner of the token."""

    __slots__ = ()

    def lasts(self, connection: ClientConnection, now: float) -> bool:
        return peer_certificate(connection) is None and super().lasts(connection, now)


class KubernetesAuthenticator:
    """Permission from the cluster's reviews. Owns ``reviews``."""

    def __init__(
        self,
        reviews: Reviews,
        *,
        cache_seconds: float,
        review_grace: float,
        front_proxies: FrontProxies | None,
        is_authorised_elsewhere: Callable[[RawRequestMessage], bool],
    ) -> None:
        """``review_grace``: seconds for which an expired permission stays valid while the cluster cannot be
        asked. ``is_authorised_elsewhere``: whether a backend authorizes the request with the caller's own
        credentials; then authentication is sufficient."""
        self._reviews = reviews
        self._cache_seconds = cache_seconds
        self._grace = review_grace
        self._front_proxies = front_proxies
        self._is_authorised_elsewhere = is_authorised_elsewhere
        self._key = secrets.token_bytes(32)
        self._users: ReviewCache[bytes, User] = ReviewCache(TOKENS, grace=review_grace)
        self._strangers: ReviewCache[bytes, AuthRefusal] = ReviewCache(STRANGERS)
        self._accesses: ReviewCache[tuple[bytes, str, str], bool] = ReviewCache(ACCESSES, grace=review_grace)
        self._token_flights: SingleFlight[bytes, User | AuthRefusal] = SingleFlight()
        self._access_flights: SingleFlight[tuple[bytes, str, str], bool | AuthRefusal] = SingleFlight()
        self._looked_ahead: ReviewCache[bytes, bool] = ReviewCache(TOKENS)
        """Users whose roots were reviewed ahead, for half the grace."""

    def permits(self, asked: AuthRequest) -> Permission | None:
        now = time.monotonic()
        shown = self._read_identity(asked)
        owner = self._users.entry(digest(self._key, shown), now) if isinstance(shown, str) else None
        user = shown if owner is None else owner.value
        if not isinstance(user, User):
            return None
        access = self._accesses.entry((user.key, asked.verb, asked.path), now)
        if access is None or not access.value:
            return ONCE if self._is_authorised_elsewhere(asked.message) else None
        if owner is None:  # a front proxy names the user
            return ONCE
        return (ReviewedPermission if self._front_proxies is None else ReviewedOfNoProxy)(owner, access)

    async def refuse(self, asked: AuthRequest) -> AuthRefusal | None:
        user, address = self._read_identity(asked), address_of(asked.connection.peername)
        if isinstance(user, str):
            user = await self._owner(user, address)
        if isinstance(user, AuthRefusal):
            return user
        if self._is_authorised_elsewhere(asked.message):
            return None
        return await self._refuse_access(user, asked.verb, asked.path, address)

    def complaint(self) -> str | None:
        """Also None while earlier permissions are still valid."""
        if self._reviews.failing_for() < self._grace:
            return None
        return self._reviews.complaint()

    async def run(self) -> None:
        await self._reviews.run()

    async def close(self) -> None:
        await self._token_flights.close()
        await self._access_flights.close()
        await self._reviews.close()

    def _read_identity(self, asked: AuthRequest) -> User | str | AuthRefusal:
        """The user named by a front proxy, else the token."""
        user = self._front_proxies.user(asked) if self._front_proxies is not None else None
        return bearer_token(asked.message.headers.getall(AUTHORIZATION, [])) if user is None else user

    async def _owner(self, token: str, address: bytes) -> User | AuthRefusal:
        key = digest(self._key, token)
        now = time.monotonic()
        known = self._users.get(key, now) or self._strangers.get(key, now)
        if known is not None:
            return known
        before = self._users.get_expired(key, now)
        if before is not None and self._is_known_to_fail():
            return before
        reviewed = await self._token_flights.run(key, lambda: self._review_token(key, token, address))
        return before if before is not None and reviewed is _NO_REVIEW else reviewed

    async def _review_token(self, key: bytes, token: str, address: bytes) -> User | AuthRefusal:
        until = self._until()
        verdict = await self._reviews.token(token, address=address)
        if isinstance(verdict, Failure):
            return _NO_REVIEW
        if verdict.user is not None:
            self._users.put(key, verdict.user, until=until)
            return verdict.user
        self._users.forget(key)
        if verdict.is_final:
            self._strangers.put(key, _BAD_TOKEN, until=until)
        return _BAD_TOKEN

    async def _refuse_access(self, user: User, verb: str, path: str, address: bytes) -> AuthRefusal | None:
        key, now = (user.key, verb, path), time.monotonic()
        is_allowed = self._accesses.get(key, now)
        if is_allowed is None:
            was_allowed = self._was_allowed(user, verb, path, now)
            if was_allowed and self._is_known_to_fail():
                return None
            reviewed = await self._access_flights.run(
                key, lambda: self._review_access(user, verb, path, address)
            )
            if isinstance(reviewed, AuthRefusal):
                return None if was_allowed else reviewed
            is_allowed = reviewed
        if is_allowed:
            self._look_ahead(user, path, address, now)
            return None
        return AuthRefusal(
            RefusalReason.FORBIDDEN, f'user "{cut(user.name)}" cannot {verb} path "{cut(path)}"'
        )

    def _was_allowed(self, user: User, verb: str, path: str, now: float) -> bool:
        """The last result for the path itself, else for the root above it."""
        known = self._accesses.get_expired((user.key, verb, path), now)
        if known is not None or verb != "get":
            return known is True
        roots = [root for root in ROOTS if path.startswith(f"{root}/")]
        return any(self._accesses.get_expired((user.key, verb, root), now) is True for root in roots)

    def _look_ahead(self, user: User, path: str, address: bytes, now: float) -> None:
        """Review all roots ahead of an outage for a user admitted for one of them or below."""
        if not self._grace or self._looked_ahead.get(user.key, now) or not path.startswith(ROOTS):
            return
        self._looked_ahead.put(user.key, True, until=now + self._grace / 2)
        for root in ROOTS:
            if root != path:
                review = partial(self._review_access, user, "get", root, address)
                self._access_flights.start((user.key, "get", root), review)

    async def _review_access(self, user: User, verb: str, path: str, address: bytes) -> bool | AuthRefusal:
        until = self._until()
        verdict = await self._reviews.access(user, path, verb=verb, address=address)
        if isinstance(verdict, Failure):
            return _NO_REVIEW
        if verdict.is_final and len(path) <= PATH_MAX:
            self._accesses.put((user.key, verb, path), verdict.is_allowed, until=until)
        return verdict.is_allowed

    def _is_known_to_fail(self) -> bool:
        """Whether reviews fail at present and are being retried, so that no caller needs to wait for
        another."""
        return self._reviews.failing_for() < inf

    def _until(self) -> float:
        """Counted from before the question, so a permission revoked meanwhile is not kept longer."""
        return time.monotonic() + self._cache_seconds
