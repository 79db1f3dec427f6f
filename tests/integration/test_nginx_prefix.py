"""Behind nginx, below a path that the service does not know: every link, form, script, redirect and hash URL
stays below it and leads somewhere."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin

import aiohttp
import orjson
import pytest

from data.explained_documents import bed
from deadline import DEADLINE
from running.nginx import needs_nginx, nginx_before
from running.service import Client, directory, service
from specmux_aggregator.config.settings import ChangeSettings
from specmux_cache import CacheOptions, SchemaCache

pytestmark = needs_nginx

PREFIX = "/some/prefix"
KEY = "apis/garden.example.org/v1"
HTML = {"Accept": "text/html,*/*;q=0.8"}  # as browsers ask
LINK = re.compile(rb'(?:href|src|action)="([^"]*)"')
PAGES_MAX = 200


@dataclass(slots=True)
class Front:
    """``base``: with the prefix."""

    base: str
    client: Client
    session: aiohttp.ClientSession
    visited: dict[str, tuple[int, str, bytes]] = field(default_factory=dict)

    async def get(self, url: str, **headers: str) -> tuple[int, Any, bytes]:
        fields = {**HTML, **headers}
        async with self.session.get(url, headers=fields, allow_redirects=False) as answer:
            return answer.status, answer.headers, await answer.read()

    async def crawl(self, url: str) -> None:
        """``url`` and all that it leads to, within this origin."""
        waiting = [url]
        while waiting and len(self.visited) < PAGES_MAX:
            url = urldefrag(waiting.pop()).url
            if url in self.visited or not url.startswith(self.base.removesuffix(PREFIX)):
                continue
            status, headers, body = await self.get(url)
            kind = headers.get("Content-Type", "").partition(";")[0]
            self.visited[url] = status, kind, body
            if "Location" in headers:
                waiting.append(urljoin(url, headers["Location"]))
            if kind == "text/html":
                waiting += [urljoin(url, unescape(link.decode())) for link in LINK.findall(body)]


@asynccontextmanager
async def behind_nginx(folder: Path) -> AsyncIterator[Front]:
    path = folder / f"{KEY}.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(orjson.dumps(bed(name={"type": "string"})))
    changes = ChangeSettings(settle=0.05)
    async with (
        service(directory("garden", folder), changes=changes) as client,
        nginx_before(client.base, PREFIX) as nginx,
        aiohttp.ClientSession() as session,
    ):
        await client.says_ready()
        # A page waits as long as a machine that is busy takes to make it.
        client.app._reading._reader._request_seconds = DEADLINE
        yield Front(nginx.url, client, session)


async def test_every_link_of_the_page_stays_and_leads_somewhere(tmp_path: Path) -> None:
    async with behind_nginx(tmp_path) as front:
        await front.crawl(f"{front.base}/")
        visited = front.visited
        outside = [url for url in visited if not url.startswith(f"{front.base}/")]
        dead = {url: status for url, (status, _, _) in visited.items() if status not in (200, 302)}
        assert (outside, dead) == ([], {})
        assert len(visited) < PAGES_MAX
        kinds = {kind for _, kind, _ in visited.values()}
        assert {"text/html", "text/css", "text/javascript", "image/svg+xml"} <= kinds
        below = f"{front.base}/openapi/ui/"
        pages = {url.removeprefix(below) for url in visited if url.startswith(below)}
        assert {"", f"kind/{KEY}/Bed", "search", "changes", f"changes/{KEY}"} <= pages


async def test_forms_and_suggestions_are_answered_below_the_prefix(tmp_path: Path) -> None:
    async with behind_nginx(tmp_path) as front:
        page = f"{front.base}/openapi/ui/kind/{KEY}/Bed"
        _, _, body = await front.get(page)
        action = re.search(rb'<form[^>]*action="([^"]*)"', body)
        assert action is not None
        status, _, found = await front.get(urljoin(page, action[1].decode()) + "?q=bed+name")
        assert status == 200
        assert b"Bed" in found and b"spec.<mark>name</mark>" in found.replace(b"<wbr>", b"")
        # What the script asks while somebody types.
        root = re.search(rb'data-root="([^"]*)"', body)
        assert root is not None
        asked = urljoin(page, f"{root[1].decode()}../search?limit=8&q=name")
        assert asked.startswith(f"{front.base}/")
        status, _, rows = await front.get(asked, Accept="*/*")
        assert (status, "rows" in orjson.loads(rows)) == (200, True)


async def test_hash_urls_redirects_and_confirmations_pass(tmp_path: Path) -> None:
    async with behind_nginx(tmp_path) as front:
        stale = f"{front.base}/openapi/v3/{KEY}?hash=0123"
        status, headers, _ = await front.get(stale, Accept="application/json")
        moved = urljoin(stale, headers["Location"])
        assert (status, moved.startswith(f"{front.base}/openapi/v3/{KEY}?hash=")) == (301, True)
        status, headers, body = await front.get(moved, Accept="application/json")
        assert (status, "immutable" in headers["Cache-Control"]) == (200, True)
        _, _, own = await front.client.get(f"/openapi/v3/{KEY}")
        assert body == own
        page = f"{front.base}/openapi/ui/kind/{KEY}/Bed"
        _, headers, _ = await front.get(page)
        again, _, nothing = await front.get(page, **{"If-None-Match": headers["ETag"]})
        assert (again, nothing) == (304, b"")


async def test_clients_of_the_documents_need_no_more_than_the_prefix(tmp_path: Path) -> None:
    def read(base: str) -> tuple[bytes, str]:
        with SchemaCache(base, CacheOptions(directory=None), warn=pytest.fail, background=False) as cache:
            schema = cache.schema(KEY)
            return schema.body, cache.resource("/apis", headers={"Accept": "application/json"}).body.decode()

    async with behind_nginx(tmp_path / "documents") as front:
        body, groups = await asyncio.to_thread(read, front.base)
        assert body == (await front.client.get(f"/openapi/v3/{KEY}"))[2]
        assert "garden.example.org" in groups
