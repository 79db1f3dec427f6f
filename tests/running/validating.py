"""The service with ``POST /openapi/validate`` over one kind, and raw connections to it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from multidict import CIMultiDictProxy
from yarl import URL

from deadline import DEADLINE
from running.service import Client, directory, service
from specmux_aggregator.config.settings import ValidationSettings
from specmux_aggregator.model.backend import Backend
from specmux_converters.crd import build

PATH = "/openapi/validate"
KIND = {"apiVersion": "shop.example.org/v1", "kind": "Order"}

ENDLESS = "!has(self.lines) || self.lines.all(a, self.lines.all(b, self.lines.all(c, a + b + c != 'x')))"
"""A rule of as many steps as the cube of the list."""

_SPEC = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1},
        "lines": {"type": "array", "items": {"type": "string"}},
        "name": {"type": "string"},
    },
    "x-kubernetes-validations": [{"rule": ENDLESS}],
}

Answer = tuple[int, CIMultiDictProxy[str], Any]


def order(name: Any = "one", **spec: Any) -> dict[str, Any]:
    return {**KIND, "metadata": {"name": name}, "spec": spec}


def write_documents(folder: Path) -> None:
    names = {"kind": "Order", "plural": "orders", "singular": "order", "listKind": "OrderList"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "orders.shop.example.org"},
        "spec": {
            "group": "shop.example.org",
            "names": names,
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    for key, document in build([definition]).documents.items():
        path = folder / f"{key}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(document))


class Shop:
    """Asks one running service to check objects."""

    def __init__(self, client: Client, session: aiohttp.ClientSession) -> None:
        self.client = client
        self._session = session
        self.held = client.app.server._connections.held  # type: ignore[union-attr]

    async def post(
        self, body: Any, query: str = "", *, content_type: str | None = "application/json", **headers: str
    ) -> Answer:
        """``body``: bytes, an iterator of them, or an object."""
        data = orjson.dumps(body) if isinstance(body, dict) else body
        data = io.BytesIO(data) if isinstance(data, bytes) else data
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if content_type is not None:
            fields["Content-Type"] = content_type
        url = URL(f"{self.client.base}{PATH}{query}", encoded=True)
        skipped = ["Content-Type"] if content_type is None else []
        async with self._session.post(
            url, data=data, headers=fields, skip_auto_headers=skipped, expect100="Expect" in fields
        ) as answer:
            return answer.status, answer.headers, orjson.loads(await answer.read())

    async def raw(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        url = URL(self.client.base)
        return await asyncio.open_connection(url.host, url.port)

    @property
    def bodies(self) -> int:
        """Bytes of bodies that are held."""
        validation = self.client.app._validation
        assert validation is not None
        return validation._bodies.held


@asynccontextmanager
async def shop(
    folder: Path,
    *,
    timeout: float = DEADLINE,
    most: int = 16,
    cluster: Backend | None = None,
    **settings: Any,
) -> AsyncIterator[Shop]:
    write_documents(folder)
    made = ValidationSettings(enabled=True, timeout=timeout, max_in_flight=most)
    async with (
        service(directory("shop", folder), cluster=cluster, validation=made, **settings) as client,
        aiohttp.ClientSession() as session,
    ):
        await client.ready()
        yield Shop(client, session)


def run(folder: Path, scenario: Callable[[Shop], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def whole() -> None:
        async with shop(folder, **settings) as found:
            await scenario(found)

    asyncio.run(whole())


async def head_of(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), DEADLINE)


def request_head(length: int | None, *more: str) -> bytes:
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = [f"POST {PATH} HTTP/1.1", "Host: x", "Content-Type: application/json", framing, *more]
    return "\r\n".join([*lines, "", ""]).encode()
