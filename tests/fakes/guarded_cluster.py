"""A cluster that knows its callers: tokens, RBAC for every request, reviews by the same rules, and objects.

    cluster.accounts["t1"] = Account("alice")       whose a token is
    cluster.access.grant("User alice", DISCOVERY)   what they may
    cluster.custom_objects.append(CustomObjects(...))

Discovery, in all its forms, is ``discovery``'s. ``strangers`` has the requests that had no good token.
"""

from __future__ import annotations

import re
import ssl
from typing import Any

from aiohttp import web

from fakes.cluster import FakeCluster, Seen, status
from fakes.custom_objects import CustomObjects
from fakes.role_based_access import Access, Account, Right, asked_right

DISCOVERY_PATH = re.compile(r"/api(/v1)?|/apis(/[^/]+){0,2}|/version")


class GuardedCluster(FakeCluster):
    def __init__(self, documents: dict[str, bytes], swagger: bytes, *, tls: ssl.SSLContext) -> None:
        super().__init__(documents, swagger, tls=tls)
        self.accounts: dict[str, Account] = {}
        self.access = Access()
        self.custom_objects: list[CustomObjects] = []
        self.strangers: list[Seen] = []
        self.review_token = self._review_token
        self.allows = self._review_access

    def served_by(self, tls: ssl.SSLContext) -> None:
        """From the next start."""
        self._tls = tls

    @web.middleware
    async def _before(self, request: web.Request, handler: Any) -> web.StreamResponse:
        async def guarded(request: web.Request) -> web.StreamResponse:
            account = self._account(request)
            if account is None:
                self.strangers.append(self.requests[-1])
                return status(401, "Unauthorized")
            if not self.access.enforce(account, asked_right(request.method, request.path_qs)):
                return status(403, "Forbidden")
            for stored in self.custom_objects:
                if stored.has(request.path):
                    return await stored.answer(request)
            if DISCOVERY_PATH.fullmatch(request.path):
                return await self.discovery.answer(request, [])
            answer: web.StreamResponse = await handler(request)
            return answer

        return await super()._before(request, guarded)

    def _account(self, request: web.Request) -> Account | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return self.accounts.get(token) if scheme == "Bearer" else None

    def _review_token(self, token: str) -> dict[str, Any] | None:
        account = self.accounts.get(token)
        return (
            None if account is None else {"user": {"username": account.name, "groups": list(account.groups)}}
        )

    def _review_access(self, spec: dict[str, Any]) -> bool:
        about = spec["nonResourceAttributes"]
        account = Account(spec["user"], tuple(spec.get("groups", ())))
        return self.access.allows(account, Right(about["verb"], about["path"]))
