"""One GET of a page that nothing stores: whole bodies, bounds, and redirects that stay at home."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from fakes.openapi_server import Reply, Request
from fakes.openapi_thread import ThreadedServer, serving_in_thread
from specmux_aggregator.errors import SourceUnreachable
from specmux_tools.sources.access import access_of
from specmux_tools.sources.options import SourceOptions
from specmux_tools.sources.remote.fetching import FetchedPage, answer_of, download, fetch_page

PAGE = {"version": "1", "notes": ["n" * 200 for _ in range(5000)]}


def got(server: ThreadedServer, path: str = "/status", *, most: int = 1 << 24, **more: Any) -> FetchedPage:
    access = access_of(SourceOptions(server=server.url), {})
    return asyncio.run(fetch_page(access, path, most=most, timeout=10, **more))


def answer(request: Request) -> Reply:
    return Reply(body=orjson.dumps(PAGE))


def test_a_page_of_many_reads_is_whole() -> None:
    with serving_in_thread(answer) as server:
        assert answer_of(SourceOptions(server=server.url), "/status", what="a service") == PAGE


def test_more_than_the_bound_is_refused() -> None:
    with serving_in_thread(answer) as server, pytest.raises(SourceUnreachable, match="more than 1000 bytes"):
        got(server, most=1000)


def test_a_redirect_within_the_server_is_followed() -> None:
    def moved(request: Request) -> Reply:
        return (
            answer(request) if request.path == "/there" else Reply(302, headers=[("Location", "/there?x=1")])
        )

    with serving_in_thread(moved) as server:
        assert got(server).status == 200
    assert [each.target for each in server.server.requests] == ["/status", "/there?x=1"]


def test_a_redirect_in_a_circle_ends() -> None:
    def around(request: Request) -> Reply:
        return Reply(302, headers=[("Location", "/status")])

    with serving_in_thread(around) as server, pytest.raises(SourceUnreachable, match="more than 5 redirects"):
        got(server)
    assert len(server.server.requests) == 6


def test_a_redirect_to_another_server_is_named_and_not_followed(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")
    with serving_in_thread(answer) as other:

        def away(request: Request) -> Reply:
            return Reply(302, headers=[("Location", f"{other.url}/login?next=secret")])

        with serving_in_thread(away) as server:
            source = SourceOptions(server=f"{server.url}/v1.json", token_file=token)
            with pytest.raises(SourceUnreachable, match=f"redirects to {other.url}/login; name that URL"):
                download(source)
    assert other.server.requests == []
