"""What one apiserver is seen to offer, check after check: dialects, documents without a hash, failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document, hash_of, serving, swagger
from running.service import QUICK, backend
from specmux_aggregator.aggregation.check_schedule import after
from specmux_aggregator.backend_sources.http import HTTPOrigin
from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome, UnchangedOffers
from specmux_aggregator.backend_sources.servers import ServerSet
from specmux_aggregator.config.settings import LimitSettings
from specmux_aggregator.model.backend import BackendKind
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Observation
from specmux_aggregator.upstream.client import BackendClient, MovedDocument, Payload
from specmux_aggregator.workers.worker import Worker
from specmux_converters.document import Limits as DocumentLimits
from specmux_converters.group_versions import GroupVersion

APPS, BATCH, VERSION = GroupVersion("apis/apps/v1"), GroupVersion("apis/batch/v1"), GroupVersion("version")
GROUP_VERSIONS_MAX = 50


@dataclass
class Watch:
    """An origin, and what is known after each of its checks, as a Refresher keeps it."""

    origin: HTTPOrigin
    server: FakeAPIServer
    last: Observation
    held: set[tuple[GroupVersion, Hash]] = field(default_factory=set)
    """Documents of which there are bytes: like the publisher, it keeps those of what is offered alone."""

    async def check(self) -> Outcome:
        outcome = await self.origin.observe(self.last)
        self.last = after(self.last, outcome, now=0.0)
        if isinstance(outcome, BackendOffers):
            offered = {(key, offer.hash) for key, offer in self.last.offers.items()}
            delivered = {(key, self.last.offers[key].hash) for key in outcome.bodies}
            self.held = (self.held | delivered) & offered
        return outcome

    def hash(self, group_version: GroupVersion) -> Hash:
        return self.last.offers[group_version].hash


@asynccontextmanager
async def watch(
    server: FakeAPIServer, *, kind: BackendKind = BackendKind.AUTO, total_timeout: float = DEADLINE
) -> AsyncIterator[Watch]:
    worker = Worker(timeout=30.0)
    async with serving(server):
        configured = backend("a", server.url, kind=kind)
        polling = replace(QUICK, total_timeout=total_timeout)
        connect = partial(BackendClient, configured, polling=polling, limits=LimitSettings())
        origin = HTTPOrigin(
            configured,
            ServerSet({configured.url: connect}),
            worker,
            limits=DocumentLimits(),
            max_group_versions=GROUP_VERSIONS_MAX,
            v3_probe_interval=0.0,
        )
        try:
            yield Watch(origin, server, Observation(backend=configured))
        finally:
            await origin.close()
            await worker.close()


def run(server: FakeAPIServer, scenario: Callable[[Watch], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with watch(server, **options) as watching:
            await scenario(watching)

    asyncio.run(main())


def with_version(note: str = "") -> FakeAPIServer:
    server = FakeAPIServer({APPS: document(APPS), VERSION: document(VERSION, note)})
    server.without_hash = {VERSION}
    return server


def test_root_that_could_not_be_used_is_read_again_when_it_has_not_changed_since() -> None:
    async def scenario(at: Watch) -> None:
        assert isinstance(await at.check(), BackendOffers)
        at.server.documents = {APPS: document(APPS, "2"), VERSION: document(VERSION)}
        at.server.without_hash = {VERSION}
        at.server.gate = asyncio.Event()
        assert isinstance(await at.check(), Failure)
        at.server.gate.set()
        assert isinstance(await at.check(), BackendOffers), "the change was taken for known"
        assert at.hash(APPS) == hash_of(document(APPS, "2"))

    run(FakeAPIServer({APPS: document(APPS)}), scenario, total_timeout=5.0)


def test_documents_of_a_check_that_failed_are_delivered_by_the_next() -> None:
    server = FakeAPIServer({"apis": document("apis"), VERSION: document(VERSION)})
    server.without_hash = {"apis", VERSION}

    async def scenario(at: Watch) -> None:
        at.server.gate = asyncio.Event()
        checking = asyncio.create_task(at.check())
        while at.server.count("/openapi/v3/") < 1:
            await asyncio.sleep(0.01)
        at.server.gate.set()  # lets the first through
        at.server.gate = asyncio.Event()
        assert isinstance(await checking, Failure)
        at.server.gate.set()
        await at.check()
        assert {key for key, _ in at.held} == {"apis", VERSION}

    run(server, scenario, total_timeout=5.0)


def test_document_without_a_hash_that_cannot_be_had_costs_no_other() -> None:
    async def scenario(at: Watch) -> None:
        complete = dict(at.server.documents or {})
        at.server.listed, at.server.documents = complete, {APPS: complete[APPS]}
        for _ in range(2):
            await at.check()
            assert set(at.last.offers) == {APPS}
            assert at.last.failure is None
            (note,) = at.last.notes
            assert note.startswith("version: not_found")
        at.server.documents = complete
        await at.check()
        assert {key for key, _ in at.held} == {VERSION}
        assert not at.last.notes
        first = at.hash(VERSION)
        at.server.documents = {APPS: document(APPS, "2"), VERSION: b"[]"}
        at.server.listed = None
        await at.check()
        assert at.hash(APPS) == hash_of(document(APPS, "2"))
        assert at.hash(VERSION) == first, "its last good one stays"
        assert {key for key, _ in at.held} == {VERSION}

    run(with_version(), scenario)


def test_unchanged_document_without_a_hash_is_not_delivered_twice() -> None:
    async def scenario(at: Watch) -> None:
        first = await at.check()
        second = await at.check()
        assert isinstance(first, BackendOffers)
        assert set(first.bodies) == {VERSION}
        assert isinstance(second, BackendOffers)
        assert not second.bodies
        assert second.offers == first.offers
        assert at.last.offers == first.offers

    run(with_version(), scenario)


def test_bytes_of_another_document_are_not_given_under_our_hash() -> None:
    async def scenario(at: Watch) -> None:
        await at.check()
        hash = at.hash(VERSION)
        found = await at.origin.document(VERSION, hash=hash, accept_gzip=True)
        assert isinstance(found, Payload)
        at.server.documents = {APPS: document(APPS), VERSION: document(VERSION, "2")}
        assert await at.origin.document(VERSION, hash=hash, accept_gzip=True) == MovedDocument(None)

    run(with_version(), scenario)


def test_what_is_offered_can_be_served_through_every_change_of_dialect() -> None:
    async def scenario(at: Watch) -> None:
        native = dict(at.server.documents or {})
        at.server.swagger_document = swagger(APPS)
        for _ in range(3):
            at.server.documents = native
            assert isinstance(await at.check(), BackendOffers)
            assert at.last.dialect is BackendKind.V3
            assert (VERSION, at.hash(VERSION)) in at.held
            at.server.documents = None
            missed = await at.check()
            assert isinstance(missed, Failure)
            assert missed.cause is Cause.NOT_FOUND
            assert at.last.dialect is BackendKind.V3
            assert isinstance(await at.check(), BackendOffers)
            assert at.last.dialect is BackendKind.V2
            assert at.held == {(APPS, at.hash(APPS))}

    run(with_version(), scenario)


def test_unchanged_swagger_costs_no_build_and_keeps_what_is_held() -> None:
    async def scenario(at: Watch) -> None:
        assert isinstance(await at.check(), BackendOffers)
        held = set(at.held)
        assert await at.check() == UnchangedOffers()
        at.server.swagger_document = None
        assert isinstance(await at.check(), Failure)
        at.server.swagger_document = swagger(BATCH)
        assert isinstance(await at.check(), BackendOffers)
        assert {key for key, _ in at.held} == {BATCH}
        assert held != at.held

    run(FakeAPIServer(None, swagger(APPS)), scenario, kind=BackendKind.V2)


def test_group_version_that_no_url_can_hold_is_left_out_of_a_conversion() -> None:
    async def scenario(at: Watch) -> None:
        await at.check()
        assert set(at.last.offers) == {APPS}

    odd = b"".join(b'"/apis/%s/v1/x":{},' % group for group in (b"..", b"a b", b"a?b", b"a\\r\\n"))
    mixed = swagger(APPS).replace(b'"paths":{', b'"paths":{' + odd)
    run(FakeAPIServer(None, mixed), scenario, kind=BackendKind.V2)


def test_swagger_of_more_group_versions_than_allowed_is_a_failure() -> None:
    async def scenario(at: Watch) -> None:
        await at.check()
        at.server.swagger_document = swagger(APPS).replace(b'"paths":{', b'"paths":{' + many)
        outcome = await at.check()
        assert isinstance(outcome, Failure)
        assert outcome.cause is Cause.TOO_LARGE
        assert set(at.last.offers) == {APPS}

    many = b"".join(b'"/apis/g%d/v1/x":{},' % number for number in range(GROUP_VERSIONS_MAX))
    run(FakeAPIServer(None, swagger(APPS)), scenario, kind=BackendKind.V2)
