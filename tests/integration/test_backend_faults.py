"""One backend misbehaves in front of the whole service: it is named in /status with the cause, its last good
documents are served, nobody else notices, and it is back within two polls."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
import trustme

from fakes import faulty_backend as faulty
from fakes.faulty_backend import FAULTS, SLOW_FAULTS, Fault, FaultyBackend, document, document_hash
from running.service import IMPATIENT, QUICK, Client, backend, service
from specmux_aggregator.config.settings import LimitSettings
from specmux_aggregator.model.backend import BackendKind
from specmux_aggregator.model.failure import Cause
from specmux_cache.access.server_access import ServerTLS
from specmux_converters.media_types import CBOR, PROTOBUF

GOOD, BAD = "apis/good/v1", "apis/bad/v1"
LIMITS = LimitSettings(max_document_bytes=4 * 1024 * 1024, max_root_bytes=4 * 1024 * 1024)
V2_FAULTS = [
    "reset", "reset_mid_body", "disconnect", "drip", "hang", "error_500", "throttled_429", "redirect_302",
    "short_body", "truncated_gzip", "cut_chunks", "not_json", "huge_length", "endless_body", "bomb",
]  # fmt: skip
DOCUMENT_FAULTS = [*V2_FAULTS, "wrong_shape", "not_gzip", "cut_without_length", "long_body"]


def swagger(title: str) -> bytes:
    tree = {
        "swagger": "2.0",
        "info": {"title": title, "version": "v1"},
        "paths": {f"/{BAD}/things": {"get": {"responses": {"200": {"description": "OK"}}}}},
    }
    return orjson.dumps(tree)


@dataclass(frozen=True, slots=True)
class Bench:
    """A service in front of a healthy and a faulty backend, both seen once and their documents fetched."""

    client: Client
    healthy: FaultyBackend
    bad: FaultyBackend
    good_url: str
    bad_url: str
    bad_document: bytes

    async def state(self, name: str = "bad") -> dict[str, Any]:
        return dict((await self.client.status())["backends"][name])

    async def until_failed(self, causes: set[str]) -> dict[str, Any]:
        await self._until(lambda failure: failure is not None and failure.cause.value in causes, str(causes))
        return await self.state()

    async def until_up(self) -> None:
        await self._until(lambda failure: failure is None, "up again")

    async def _until(self, is_so: Any, what: str) -> None:
        publisher = self.client.app.publisher
        await self.client.until(lambda: is_so(publisher.current.observations["bad"].failure), what)  # type: ignore[index]

    async def assert_others_see_nothing(self) -> None:
        for _ in range(20):
            status, _, body = await self.client.get(self.good_url)
            assert (status, body) == (200, document(GOOD))
            assert (await self.client.paths()).keys() >= {GOOD, BAD}
        assert (await self.state("good"))["failedChecks"] == 0

    async def assert_last_good_is_served(self) -> None:
        path = self.bad_url.partition("?")[0]
        for target in (self.bad_url, path):
            status, _, body = await self.client.get(target)
            assert (status, body) == (200, self.bad_document)
        status, headers, _ = await self.client.get(f"{path}?hash=0123")
        assert (status, headers["Location"]) == (301, f"{self.bad_url.removeprefix(path)}&redirected=1")

    async def assert_other_forms_are_made_of_it(self) -> None:
        for media_type in (CBOR, PROTOBUF):
            status, headers, body = await self.client.get(self.bad_url, Accept=media_type)
            assert (status, headers["Content-Type"]) == (200, media_type)
            assert body


@asynccontextmanager
async def bench(bad: FaultyBackend, fault: str = "", **fields: Any) -> AsyncIterator[Bench]:
    polling = IMPATIENT if fault in SLOW_FAULTS else QUICK
    healthy = FaultyBackend({GOOD: document(GOOD)})
    async with healthy, bad:
        backends = (backend("bad", bad.url, **fields), backend("good", healthy.url))
        async with service(*backends, limits=LIMITS, polling=polling) as client:
            await client.ready()
            paths = await client.paths()
            await client.get(paths[GOOD])
            _, _, body = await client.get(paths[BAD])
            yield Bench(client, healthy, bad, paths[GOOD], paths[BAD], body)


async def assert_fault_is_contained(at: Bench, fault: Fault, causes: set[str]) -> None:
    at.bad.fault = fault
    state = await at.until_failed(causes)
    assert state["state"] == "failed"
    assert state["groupVersions"] == 1
    assert (await at.client.status())["groupVersions"][BAD]["stale"] is True
    await at.assert_others_see_nothing()
    await at.assert_last_good_is_served()


async def assert_recovery_within_two_polls(at: Bench) -> None:
    at.bad.fault = None
    await at.bad.drop()
    already = len(at.bad.requests)
    await at.until_up()
    polls = [request.target for request in at.bad.requests[already:]]
    assert 1 <= len([target for target in polls if target in ("/openapi/v3", "/openapi/v2")]) <= 2
    await at.assert_last_good_is_served()


@pytest.mark.parametrize("name", FAULTS)
async def test_fault_of_a_v3_backend_is_contained(name: str, caplog: pytest.LogCaptureFixture) -> None:
    fault, causes = FAULTS[name]
    caplog.set_level(logging.INFO)

    async with bench(FaultyBackend({BAD: document(BAD)}), name) as at:
        caplog.clear()
        await assert_fault_is_contained(at, fault, causes)
        await assert_recovery_within_two_polls(at)
    told = [record for record in caplog.records if "backend bad" in record.getMessage()]
    lines = [record.levelname for record in told if "discovery" not in record.getMessage()]
    # One line for each change of state; a reset may be seen in two ways.
    assert lines in (["WARNING", "INFO"], ["WARNING", "WARNING", "INFO"])
    discovery = [record.getMessage() for record in told if "discovery" in record.getMessage()]
    assert all(line != following for line, following in pairwise(discovery))
    assert len(discovery) <= 4
    assert all(record.exc_info is None for record in caplog.records)


@pytest.mark.parametrize("name", V2_FAULTS)
async def test_fault_of_a_v2_backend_is_contained(name: str) -> None:
    fault, causes = FAULTS[name]

    async with bench(FaultyBackend(swagger=swagger("v2")), name, kind=BackendKind.V2) as at:
        await assert_fault_is_contained(at, fault, causes)
        await assert_recovery_within_two_polls(at)


async def test_refused_connections_are_contained() -> None:
    async with bench(FaultyBackend({BAD: document(BAD)})) as at:
        await at.bad.refuse()
        assert (await at.until_failed({Cause.REFUSED.value}))["error"]["cause"] == "refused"
        await at.assert_others_see_nothing()
        await at.assert_last_good_is_served()
        await at.assert_other_forms_are_made_of_it()
        await at.bad.listen()
        await assert_recovery_within_two_polls(at)


async def test_expired_certificate_is_contained(tmp_path: Path) -> None:
    ca = trustme.CA()
    (tmp_path / "ca.crt").write_bytes(ca.cert_pem.bytes())
    now = dt.datetime.now(dt.UTC)
    expired = ca.issue_cert("127.0.0.1", not_before=now - dt.timedelta(2), not_after=now - dt.timedelta(1))
    valid = ca.issue_cert("127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    valid.configure_cert(context)

    tls = ServerTLS(ca_file=tmp_path / "ca.crt")
    async with bench(FaultyBackend({BAD: document(BAD)}, tls=context), tls=tls) as at:
        expired.configure_cert(context)
        await at.bad.drop()
        state = await at.until_failed({Cause.BAD_TLS.value})
        assert "expired" in state["error"]["detail"]
        await at.assert_others_see_nothing()
        await at.assert_last_good_is_served()
        valid.configure_cert(context)
        await assert_recovery_within_two_polls(at)


@pytest.mark.parametrize("name", DOCUMENT_FAULTS)
async def test_document_that_cannot_be_had_is_503_and_never_half_a_document(name: str) -> None:
    """The root is sound and what it lists is not: the new document was never seen, so there is none."""
    fault, _ = FAULTS[name]

    async with bench(FaultyBackend({BAD: document(BAD)}), name) as at:

        async def fault_of_documents(exchange: faulty.Exchange) -> None:
            await (at.bad.behave if exchange.target == "/openapi/v3" else fault)(exchange)

        changed = document(BAD, "changed")
        at.bad.fault = fault_of_documents
        at.bad.documents[BAD] = changed
        entries = at.client.app.publisher
        await at.client.until(
            lambda: entries.current.entries[BAD].offer.hash == document_hash(changed)  # type: ignore[index]
        )
        new_url = (await at.client.paths())[BAD]
        (status, headers, body), _ = await asyncio.gather(
            at.client.get(new_url), at.assert_others_see_nothing()
        )
        assert status == 503
        assert int(headers["Retry-After"]) >= 1
        assert orjson.loads(body)["kind"] == "Status"
        at.bad.fault = None
        status, _, body = await at.client.get(new_url)
        assert (status, body) == (200, changed)


async def test_backend_that_is_broken_from_the_start_delays_nobody() -> None:
    healthy = FaultyBackend({GOOD: document(GOOD)})
    broken = FaultyBackend({BAD: document(BAD)}, fault=faulty.hang)
    async with AsyncExitStack() as stack:
        for server in (healthy, broken):
            await stack.enter_async_context(server)
        backends = (backend("bad", broken.url), backend("good", healthy.url))
        client = await stack.enter_async_context(service(*backends))
        publisher = client.app.publisher
        await client.until(lambda: GOOD in publisher.current.entries)
        assert publisher.current.observations["bad"].attempted is False  # type: ignore[index]
        status, _, body = await client.get((await client.paths())[GOOD])
        assert (status, body) == (200, document(GOOD))
        assert (await client.get(f"/openapi/v3/{BAD}"))[0] == 503  # nobody can know yet
        broken.fault = None
        await broken.drop()
        await client.until(lambda: BAD in publisher.current.entries)


async def test_root_of_another_backend_s_documents_is_no_fault_when_only_own_ones_are_configured() -> None:
    greedy = FaultyBackend({BAD: document(BAD), GOOD: document(GOOD, "stolen")})
    async with bench(greedy, group_versions=frozenset({BAD}), priority=100) as at:
        await at.assert_others_see_nothing()
        assert (await at.state())["notes"]
