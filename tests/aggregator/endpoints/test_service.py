"""Endpoints that are registered by path, beside documents and discovery."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.endpoints.routes import Route, RouteTable
from specmux_aggregator.endpoints.service import Service
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, prepare
from specmux_aggregator.server.protocols import Pending


class Echo:
    """Answers at hand below ``/echo/now`` and after waiting elsewhere."""

    def immediate(self, request: Request) -> PreparedAnswer | None:
        return prepare(200, [], b"now") if request.path.endswith("/now") else None

    async def respond(self, request: Request) -> PreparedAnswer:
        return prepare(200, [], b"later")


def service() -> Service:
    representations = Representations(max_bytes=1000)
    publisher = Publisher(representations, timed=lambda *_: None)
    documents: Any = None  # no document is asked for
    return Service(
        publisher,
        representations,
        documents,
        refresher_of=lambda _: None,
        routes=RouteTable([Route(path, Echo(), "echo") for path in ("/openapi/explain/", "/openapi/v3/")]),
    )


@pytest.mark.parametrize(
    ("path", "now", "later"),
    [
        ("/openapi/explain/now", b"now", b"later"),
        ("/openapi/explain", None, b"later"),
        ("/openapi/explain/a/b", None, b"later"),
    ],
)
def test_endpoint_answers_all_below_its_path(path: str, now: bytes | None, later: bytes) -> None:
    found = service().immediate(Request("GET", path))
    assert (found.body if isinstance(found, PreparedAnswer) else None) == now
    assert asyncio.run(service().respond(Pending(Request("GET", path)))).body == later


@pytest.mark.parametrize("path", ["/openapi/explained", "/openapi", "/openapi/explai", "/"])
def test_endpoint_has_no_other_path(path: str) -> None:
    answer = service().immediate(Request("GET", path))
    assert isinstance(answer, PreparedAnswer)
    assert answer.status == 404


@pytest.mark.parametrize(
    "path", ["/openapi/v3", "/openapi/v3/apis/apps/v1", "/openapi/explain/now", "/apis", "/"]
)
def test_list_that_would_take_long_to_read_is_431_everywhere(path: str) -> None:
    asked = Request("GET", path, accept=",".join(["*/*"] * 100))
    at_hand = service().immediate(asked)
    assert isinstance(at_hand, PreparedAnswer)
    assert at_hand.status == 431


def test_documents_are_nobody_elses() -> None:
    answer = service().immediate(Request("GET", "/openapi/v3/apis/apps/v1"))
    assert isinstance(answer, PreparedAnswer)
    assert (answer.status, answer.route) == (503, "openapi_document")  # no backend is known yet


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/openapi/explain", "/openapi/explain/now"])
def test_method_that_a_route_does_not_have_is_405_with_those_it_has(path: str, method: str) -> None:
    at_once = service().immediate(Request(method, path))
    later = asyncio.run(service().respond(Pending(Request(method, path))))
    for answer in (at_once, later):
        assert isinstance(answer, PreparedAnswer)
        assert (answer.status, answer.route) == (405, "echo")
        assert b"Allow: GET, HEAD" in answer.head


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "index"),
        ("/a", "tree"),
        ("/a/", "tree"),
        ("/a/b", "exact"),
        ("/a/b/c", "tree"),
        ("/alive", None),
        ("/b", "other"),
        ("/b/c", None),
        ("", None),
    ],
)
def test_path_finds_its_exact_route_before_the_first_tree(path: str, name: str | None) -> None:
    rows = {"/a/": "tree", "/a/b/": "late", "/a/b": "exact", "/b": "other", "/": "index"}
    found = RouteTable([Route(each, Echo(), name) for each, name in rows.items()]).find(path)
    assert (None if found is None else found.name) == name
