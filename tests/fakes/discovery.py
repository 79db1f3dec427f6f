"""The discovery of a fake apiserver, in the form that a test wants; the resources are its to change."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import orjson
from aiohttp import web

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def resource(
    group_version: str, plural: str = "things", kind: str = "Thing", **fields: Any
) -> dict[str, Any]:
    """As the aggregated form has it."""
    group, version = _parts(group_version)
    return {
        "resource": plural,
        "responseKind": {"group": group, "version": version, "kind": kind},
        "scope": "Namespaced",
        "singularResource": kind.lower(),
        "verbs": ["get", "list"],
        **fields,
    }


class FakeDiscovery:
    """``form``: "aggregated" (v2), "v2beta1", "legacy", or None for a server without discovery.

    ``lists``: resources by group-version; None: one resource for each group-version that has a document.
    """

    def __init__(self) -> None:
        self.form: str | None = "aggregated"
        self.lists: dict[str, list[dict[str, Any]]] | None = None
        self.stale: set[str] = set()
        self.failing: dict[str, int] = {}
        """Status by path."""
        self.version: Any = None
        self.delay = 0.0
        self.log: list[str] = []
        self.conditional: list[str] = []
        """Paths that were asked for with If-None-Match."""

    async def answer(self, request: web.Request, keys: list[str]) -> web.Response:
        path = request.path
        self.log.append(path)
        await asyncio.sleep(self.delay)
        if path in self.failing:
            raise _error(self.failing[path])
        if path == "/version":
            if self.version is None:
                raise web.HTTPNotFound
            return web.json_response(self.version)
        if self.form is None:
            raise web.HTTPNotFound
        lists = self.lists
        if lists is None:
            lists = {key: [resource(key)] for key in keys if _is_version(key)}
        body = self._body(path, lists)
        if body is None:
            raise web.HTTPNotFound
        return self._conditional(request, orjson.dumps(body))

    def _body(self, path: str, lists: dict[str, list[dict[str, Any]]]) -> dict[str, Any] | None:
        below = {key: found for key, found in lists.items() if f"/{key}".startswith(path + "/")}
        if path in ("/api", "/apis") and self.form in ("aggregated", "v2beta1"):
            return _aggregated(below, self.stale, "v2" if self.form == "aggregated" else self.form)
        if path == "/api":
            return {"kind": "APIVersions", "versions": [_parts(key)[1] for key in below]}
        if path == "/apis":
            return _group_list(below)
        found = lists.get(path[1:])
        return None if found is None else _resource_list(path[1:], found)

    def _conditional(self, request: web.Request, body: bytes) -> web.Response:
        is_aggregated = self.form in ("aggregated", "v2beta1")
        etag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
        if "If-None-Match" in request.headers:
            self.conditional.append(request.path)
        if is_aggregated and request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers={"ETag": etag})
        # The reference sends no entity tag with the legacy form.
        headers = {"Content-Type": V2.replace("v2", self.form or ""), "ETag": etag} if is_aggregated else {}
        if self.form == "aggregated":
            headers["Content-Type"] = V2
        headers.setdefault("Content-Type", "application/json")
        return web.Response(body=body, headers=headers)


def _is_version(key: str) -> bool:
    """Whether a document is a group-version's; a root lists documents of groups (``apis/apps``) too."""
    parts = key.split("/")
    return len(parts) == {"api": 2, "apis": 3}.get(parts[0])


def _parts(key: str) -> tuple[str, str]:
    parts = key.split("/")
    return ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])


def _error(status: int) -> web.HTTPException:
    return next(
        kind()
        for kind in (
            web.HTTPForbidden,
            web.HTTPServiceUnavailable,
            web.HTTPInternalServerError,
            web.HTTPNotFound,
        )
        if kind.status_code == status
    )


def _aggregated(lists: dict[str, list[dict[str, Any]]], stale: set[str], version: str) -> dict[str, Any]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for key, found in lists.items():
        group, name = _parts(key)
        is_stale = key in stale
        groups.setdefault(group, []).append(
            {
                "version": name,
                "freshness": "Stale" if is_stale else "Current",
                "resources": [] if is_stale else found,
            }
        )
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [
            {"metadata": {"name": name, "creationTimestamp": None}, "versions": versions}
            for name, versions in groups.items()
        ],
    }


def _group_list(lists: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    groups: dict[str, list[dict[str, str]]] = {}
    for key in lists:
        group, version = _parts(key)
        groups.setdefault(group, []).append({"groupVersion": f"{group}/{version}", "version": version})
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [
            {"name": name, "versions": versions, "preferredVersion": versions[0]}
            for name, versions in groups.items()
        ],
    }


def _resource_list(key: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    group, version = _parts(key)
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [
            {
                "name": item["resource"],
                "singularName": item["singularResource"],
                "namespaced": item["scope"] == "Namespaced",
                "kind": item["responseKind"]["kind"],
                "verbs": item["verbs"],
                "shortNames": item.get("shortNames", []),
            }
            for item in found
        ],
    }
