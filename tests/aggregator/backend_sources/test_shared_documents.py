"""``apis`` and ``version`` of an apiserver that passes on everybody's: its own are published, and stay."""

from __future__ import annotations

import itertools

import orjson
from aiohttp import web

from aggregator.backend_sources.test_http import Watch, run
from fakes.apiserver import FakeAPIServer, document, hash_of
from specmux_aggregator.backend_sources.outcome import BackendOffers, UnchangedOffers
from specmux_aggregator.backend_sources.shared_documents import REFERENCE
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.upstream.client import Payload
from specmux_converters.group_versions import GroupVersion

APIS, VERSION = GroupVersion("apis"), GroupVersion("version")
OWN, OTHER = {"title": "Kubernetes", "version": "1.34"}, {"title": "Wardle", "version": "0.1"}


def of(key: str, info: dict[str, str], note: str = "") -> bytes:
    return orjson.dumps({**orjson.loads(document(key, note)), "info": info, "x-note": note})


class Flapping(FakeAPIServer):
    """Roots and requests without a hash are answered with one server's documents after the other's."""

    def __init__(self, note: str = "") -> None:
        super().__init__()
        self.change(note)
        self._turns = itertools.count()
        self.is_steady = False

    def change(self, note: str) -> None:
        self.variants = [{key: of(key, info, note) for key in (APIS, VERSION)} for info in (OTHER, OWN)]
        self.documents = {REFERENCE: of(REFERENCE, OWN), **self.variants[1]}

    def own(self, key: GroupVersion) -> Hash:
        return Hash(hash_of(self.variants[1][key]))

    def _turn(self) -> None:
        if not self.is_steady and self.documents is not None:
            self.documents |= self.variants[next(self._turns) % 2]

    async def _root(self, request: web.Request) -> web.Response:
        self._turn()
        return await super()._root(request)

    async def _document(self, request: web.Request) -> web.Response:
        self._turn()
        return await super()._document(request)


def test_apiservers_own_are_offered_whatever_its_root_says() -> None:
    server = Flapping()

    async def scenario(at: Watch) -> None:
        for _ in range(10):
            await at.check()
            assert {key: at.hash(key) for key in (APIS, VERSION)} == {
                key: server.own(key) for key in (APIS, VERSION)
            }
        asked = server.count("/openapi/v3/")
        before = at.last
        for _ in range(10):
            await at.check()
        assert at.last is before, "nothing changes"
        assert server.count("/openapi/v3/") == asked, "no document is asked for again"

    run(server, scenario)


def test_bytes_come_with_the_check_and_can_be_had_again() -> None:
    server = Flapping()

    async def scenario(at: Watch) -> None:
        outcome = await at.check()
        assert isinstance(outcome, BackendOffers)
        assert {APIS, VERSION} <= outcome.bodies.keys()
        for key in (APIS, VERSION):
            again = await at.origin.document(key, hash=server.own(key), accept_gzip=True)
            assert isinstance(again, Payload)
            assert again.body == outcome.bodies[key]

    run(server, scenario)


def test_upgrade_is_followed() -> None:
    server = Flapping()

    async def scenario(at: Watch) -> None:
        await at.check()
        server.change("upgraded")
        for _ in range(4):
            await at.check()
        assert at.hash(APIS) == server.own(APIS)
        assert at.hash(VERSION) == server.own(VERSION)

    run(server, scenario)


def test_what_cannot_be_told_is_left_out_and_tried_again() -> None:
    server = Flapping()
    server.is_steady = True
    server.documents |= server.variants[0]  # type: ignore[operator]

    async def scenario(at: Watch) -> None:
        await at.check()
        assert set(at.last.offers) == {REFERENCE}
        assert not isinstance(await at.check(), UnchangedOffers)
        server.documents |= server.variants[1]  # type: ignore[operator]
        await at.check()
        assert set(at.last.offers) == {REFERENCE, APIS, VERSION}

    run(server, scenario)


def test_server_that_does_not_aggregate_is_taken_at_its_word() -> None:
    server = FakeAPIServer({VERSION: of(VERSION, OTHER)})

    async def scenario(at: Watch) -> None:
        await at.check()
        assert at.hash(VERSION) == hash_of(of(VERSION, OTHER))
        assert server.count("/openapi/v3/") == 0

    run(server, scenario)
