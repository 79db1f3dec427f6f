"""Long answers about discovery are made in a thread, and are the same as short ones."""

from __future__ import annotations

import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident
from typing import Any

import orjson
import pytest

from specmux_aggregator.api_discovery.accept import ALL, LEGACY, DiscoveryForm
from specmux_aggregator.api_discovery.backend_knowledge import (
    BackendListings,
    DiscoverySource,
    Knowledge,
    after,
)
from specmux_aggregator.api_discovery.encoded_directory import SMALL, Asked, DiscoveryIndex, PendingAnswer
from specmux_aggregator.api_discovery.merge import merge
from specmux_aggregator.api_discovery.watch import DiscoveryWatch
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.endpoints.discovery import decide
from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_converters import codecs
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import CBOR, JSON, MediaType
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
    index.make(unmade.asked)
    answer = decide(index, request)
    assert isinstance(answer, PreparedAnswer)
    assert answer.status == 200


def test_a_short_one_is_given_at_once() -> None:
    for path in ("/apis", "/apis/g0.io", "/apis/g0.io/v1"):
        assert isinstance(decide(index_of((3,)), Request("GET", path)), PreparedAnswer)


def test_lists_are_named_while_a_thread_makes_answers() -> None:
    index, interval = index_of((1,) * 2000), sys.getswitchinterval()
    every = [(f"/apis/g{number}.io", LEGACY[0], Coding.IDENTITY) for number in range(2000)]
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as pool:
            making = pool.submit(lambda: [index.make(each) for each in every])
            while not making.done():
                assert index.list_asked() == ()
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("form", ALL)
def test_forms_of_long_answers_agree(form: DiscoveryForm) -> None:
    index = index_of((*((2,) * 300), 200), subresources=5)
    plain = DiscoveryForm(JSON, form.version)
    for each in (form, plain):
        index.make(("/apis", each, Coding.IDENTITY))
    body, json = (index._coded["/apis", each, Coding.IDENTITY] for each in (form, plain))
    assert digest_of(index, form) == digest_of(index, plain)
    if form.media_type == CBOR:
        assert body == codecs.encode(orjson.loads(json), CBOR)
    else:
        assert orjson.loads(body)["kind"]


def digest_of(index: DiscoveryIndex, form: DiscoveryForm) -> str:
    rendering = index.rendering("/apis", "/apis", form)
    assert rendering is not None
    return rendering.json_digest


@pytest.mark.parametrize(
    ("made", "path"),
    [(VERSIONS, "/apis"), (RESOURCES, "/apis/g0.io/v1"), (SUBRESOURCES, "/apis/g0.io/v1")],
    ids=["versions", "resources", "subresources"],
)
@pytest.mark.parametrize("media_type", [JSON, CBOR])
def test_long_answer_is_made_beside_the_event_loop(
    made: tuple[tuple[int, ...], int], path: str, media_type: MediaType, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, threads = index_of(*made), []
    make = DiscoveryIndex.make
    monkeypatch.setattr(
        DiscoveryIndex, "make", lambda self, asked: (threads.append(get_ident()), make(self, asked))
    )
    unmade = PendingAnswer(index, (path, DiscoveryForm(media_type), Coding.GZIP))
    asyncio.run(new_watch().make(unmade))
    assert threads and get_ident() not in threads
    assert unmade.asked in index._coded


def test_long_answers_are_made_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many forms are asked for at once: each thread holds the event loop up."""
    index, watch, running, most = index_of(*VERSIONS), new_watch(), [], []

    def make(_: DiscoveryIndex, asked: Asked) -> None:
        running.append(asked)
        time.sleep(0.01)
        most.append(len(running))
        running.remove(asked)

    monkeypatch.setattr(DiscoveryIndex, "make", make)

    async def scenario() -> None:
        answers = (PendingAnswer(index, ("/apis", form, Coding.GZIP)) for form in ALL)
        await asyncio.gather(*map(watch.make, answers))

    asyncio.run(scenario())
    assert most == [1] * len(ALL)


def new_watch() -> DiscoveryWatch:
    synthesis: Any = None  # of no backend
    return DiscoveryWatch(Settings(), synthesis)
