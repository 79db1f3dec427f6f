"""Long answers about discovery are made in turns, and are the same as short ones."""

from __future__ import annotations

import asyncio
import time

import orjson
import pytest

from specmux_aggregator.api_discovery.accept import ALL, LEGACY, DiscoveryForm
from specmux_aggregator.api_discovery.backend_knowledge import (
    BackendListings,
    DiscoverySource,
    Knowledge,
    after,
)
from specmux_aggregator.api_discovery.encoded_directory import SMALL, DiscoveryIndex, PendingAnswer
from specmux_aggregator.api_discovery.merge import merge
from specmux_aggregator.api_discovery.streamed_json import done
from specmux_aggregator.api_discovery.watch import render
from specmux_aggregator.endpoints.discovery import decide
from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_converters import codecs
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import CBOR, JSON
from specmux_converters.resources import APIResource, GroupVersionKind, Subresource

VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
KIND = GroupVersionKind("g.io", "v1", "Thing")
VERSIONS, RESOURCES, SUBRESOURCES = ((3,) * 3000, 1), ((6000,), 1), ((1,), 20_000)
"""Backends with many of each: sizes of their group-versions, and subresources of each resource."""


def thing(number: int, subresources: int) -> APIResource:
    return APIResource(
        name=f"things{number}",
        kind=KIND,
        singular="thing",
        is_namespaced=True,
        verbs=VERBS,
        subresources=tuple(
            Subresource(name=f"s{other}", kind=KIND, verbs=VERBS) for other in range(subresources)
        ),
    )


def index_of(sizes: tuple[int, ...], subresources: int = 1) -> DiscoveryIndex:
    """A group-version with so many resources each."""
    listings = {
        GroupVersion(f"apis/g{number}.io/v1"): tuple(thing(each, subresources) for each in range(size))
        for number, size in enumerate(sizes)
    }
    told = BackendListings(DiscoverySource.AGGREGATED, listings)
    known = after(Knowledge(backend=Backend(name=BackendName("a"))), told, now=0.0)
    return DiscoveryIndex(merge([known], now=0.0, grace=0.0))


def test_a_long_answer_is_made_before_it_is_given() -> None:
    index = index_of((3 * SMALL,))
    request = Request("GET", "/apis/g0.io/v1", accept_encoding="gzip")
    unmade = decide(index, request)
    assert unmade == PendingAnswer(index, ("/apis/g0.io/v1", LEGACY[0], Coding.GZIP))
    asyncio.run(render(index, unmade.asked))
    answer = decide(index, request)
    assert isinstance(answer, PreparedAnswer)
    assert answer.status == 200


def test_a_short_one_is_given_at_once() -> None:
    for path in ("/apis", "/apis/g0.io", "/apis/g0.io/v1"):
        assert isinstance(decide(index_of((3,)), Request("GET", path)), PreparedAnswer)


@pytest.mark.parametrize("form", ALL)
def test_forms_of_long_answers_agree(form: DiscoveryForm) -> None:
    index = index_of((*((2,) * 300), 200), subresources=5)
    rendering = done(index.steps("/apis", "/apis", form))
    plain = done(index.steps("/apis", "/apis", DiscoveryForm(JSON, form.version)))
    assert rendering.json_digest == plain.json_digest
    if form.media_type == CBOR:
        assert rendering.body == codecs.encode(orjson.loads(plain.body), CBOR)
    else:
        assert orjson.loads(rendering.body)["kind"]


@pytest.mark.parametrize(
    "made", [VERSIONS, RESOURCES, SUBRESOURCES], ids=["versions", "resources", "subresources"]
)
@pytest.mark.parametrize("form", [DiscoveryForm(JSON, "v2"), DiscoveryForm(CBOR, "v2"), DiscoveryForm(CBOR)])
def test_no_step_takes_long(made: tuple[tuple[int, ...], int], form: DiscoveryForm) -> None:
    """Processor time, so that other work on the machine does not count."""
    index, took = index_of(*made), []
    for path in ("/apis", "/apis/g0.io/v1"):
        subject = index.find(path)
        assert subject is not None
        before = time.thread_time()
        for _ in index.steps(path, subject, form if path == "/apis" else DiscoveryForm(form.media_type)):
            took.append(time.thread_time() - before)
            before = time.thread_time()
    assert sorted(took)[-5:][0] < 0.005  # garbage may be collected in some


def test_others_have_their_turn_meanwhile() -> None:
    index, asked = index_of(*VERSIONS), ("/apis", DiscoveryForm(JSON, "v2"), Coding.GZIP)

    async def scenario() -> int:
        turns = 0
        task = asyncio.ensure_future(render(index, asked))
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert asyncio.run(scenario()) > 5
