"""Native documents: taken from their owner once, checked, kept, and given in every form."""

from __future__ import annotations

import asyncio
import gzip

import cbor2
import orjson

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document, hash_of, serving
from running.service import QUICK, Client, backend, service
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.model.backend import BackendName
from specmux_converters.media_types import CBOR, PROTOBUF

APPS, BATCH = "apis/apps/v1", "apis/batch/v1"


async def test_root_lists_every_backend_and_documents_come_through() -> None:
    one, two = FakeAPIServer({APPS: document(APPS)}), FakeAPIServer({BATCH: document(BATCH)})
    async with (
        serving(one),
        serving(two),
        service(backend("a", one.url), backend("b", two.url)) as client,
    ):
        await client.ready()
        paths = await client.paths()
        assert paths == {
            APPS: f"/openapi/v3/{APPS}?hash={hash_of(document(APPS))}",
            BATCH: f"/openapi/v3/{BATCH}?hash={hash_of(document(BATCH))}",
        }
        for key, url in paths.items():
            status, headers, body = await client.get(url)
            assert (status, body) == (200, document(key))
            assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
            assert headers["ETag"] == f'"{hash_of(body)}"'


async def test_backend_documents_are_not_downloaded_before_someone_asks() -> None:
    origin = FakeAPIServer({APPS: document(APPS)})
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        await asyncio.sleep(0.3)
        assert origin.count(f"/openapi/v3/{APPS}") == 0


async def test_simultaneous_first_requests_cause_one_fetch() -> None:
    origin = FakeAPIServer({APPS: document(APPS)})
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        url = (await client.paths())[APPS]
        origin.gate = asyncio.Event()
        asked = [
            asyncio.create_task(client.get(url, Accept=accept)) for accept in ("*/*", CBOR, PROTOBUF) * 20
        ]
        await asyncio.sleep(0.2)
        origin.gate.set()
        assert {status for status, _, _ in await asyncio.gather(*asked)} == {200}
        assert origin.count(f"/openapi/v3/{APPS}") == 1


async def test_every_form_is_made_from_the_one_fetch_even_with_the_backend_gone() -> None:
    origin = FakeAPIServer({APPS: document(APPS)})
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        url = (await client.paths())[APPS]
        await client.get(url)
        await origin.stop()
        observed = client.app.publisher
        await client.until(lambda: observed.current.observations["a"].failure is not None)  # type: ignore[index]
        plain = orjson.loads(document(APPS))
        _, headers, body = await client.get(url, Accept_Encoding="gzip")
        assert headers["Content-Encoding"] == "gzip"
        assert orjson.loads(gzip.decompress(body)) == plain
        _, headers, body = await client.get(url, Accept=CBOR)
        assert headers["Content-Type"] == CBOR
        assert cbor2.loads(body) == plain
        status, headers, body = await client.get(url, Accept=PROTOBUF)
        assert (status, headers["Content-Type"]) == (200, PROTOBUF)
        assert body
        assert b"specmux_stale_served_total 3.0" in (await client.get("/metrics"))[2]


async def test_dead_backend_without_a_kept_document_is_503_and_others_see_nothing() -> None:
    one, two = FakeAPIServer({APPS: document(APPS)}), FakeAPIServer({BATCH: document(BATCH)})
    async with (
        serving(one),
        serving(two),
        service(backend("a", one.url), backend("b", two.url)) as client,
    ):
        await client.ready()
        paths = await client.paths()
        await one.stop()
        status, headers, body = await client.get(paths[APPS])
        assert status == 503
        assert int(headers["Retry-After"]) >= 1
        assert orjson.loads(body)["reason"] == "ServiceUnavailable"
        assert (await client.get(paths[BATCH]))[0] == 200
        assert await client.paths() == paths


async def test_backend_out_of_reach_is_not_asked_for_documents() -> None:
    origin = FakeAPIServer({APPS: document(APPS)})
    await origin.start()
    try:
        async with service(backend("a", origin.url)) as client:
            await client.says_ready()
            url = (await client.paths())[APPS]
            await origin.stop()
            observed = client.app.publisher
            await client.until(
                lambda: observed.current.observations[BackendName("a")].failure is not None, "away"
            )
            before = await downloads(client)
            for _ in range(5):
                status, headers, _ = await client.get(url)
                assert (status, int(headers["Retry-After"]) >= 1) == (503, True)
            assert await downloads(client) == before
            await origin.start()
            async with asyncio.timeout(DEADLINE):
                while (await client.get(url))[0] != 200:
                    await asyncio.sleep(0.02)
    finally:
        await origin.stop()


async def downloads(client: Client) -> list[bytes]:
    lines = (await client.get("/metrics"))[2].splitlines()
    return [line for line in lines if b"duration_seconds_count" in line and b'phase="download"' in line]


async def test_document_that_changed_between_root_and_fetch_redirects_to_the_new_hash() -> None:
    origin = FakeAPIServer({APPS: document(APPS, "1")})
    slow = PollingSettings(interval=60, revalidate_interval=30)
    async with serving(origin), service(backend("a", origin.url), polling=slow) as client:
        await client.ready()
        stale = (await client.paths())[APPS]
        origin.documents = {APPS: document(APPS, "2")}
        status, headers, _ = await client.get(stale + "&timeout=32s")
        assert status == 301
        assert headers["Location"] == f"?hash={hash_of(document(APPS, '2'))}&timeout=32s&redirected=1"
        assert headers["Cache-Control"] == "no-store"
        status, _, body = await client.get(f"/openapi/v3/{APPS}{headers['Location']}")
        assert (status, body) == (200, document(APPS, "2"))


async def test_request_without_hash_gets_the_new_document_when_it_changed_meanwhile() -> None:
    origin = FakeAPIServer({APPS: document(APPS, "1")})
    slow = PollingSettings(interval=60, revalidate_interval=30)
    async with serving(origin), service(backend("a", origin.url), polling=slow) as client:
        await client.ready()
        origin.documents = {APPS: document(APPS, "2")}
        status, _, body = await client.get(f"/openapi/v3/{APPS}")
        assert (status, body) == (200, document(APPS, "2"))


async def test_hash_that_only_the_backend_knows_is_found_by_asking_it_once() -> None:
    origin = FakeAPIServer({APPS: document(APPS, "1")})
    slow = PollingSettings(interval=60, revalidate_interval=0.05)
    async with serving(origin), service(backend("a", origin.url), polling=slow) as client:
        await client.ready()
        await asyncio.sleep(0.1)
        origin.documents = {APPS: document(APPS, "2")}
        url = f"/openapi/v3/{APPS}?hash={hash_of(document(APPS, '2'))}"
        answers = await asyncio.gather(*(client.get(url) for _ in range(20)))
        assert {(status, body) for status, _, body in answers} == {(200, document(APPS, "2"))}
        # At the start, and for all together; those who come while it is asked share one more, since what
        # is being answered may be from before the change.
        assert origin.count("/openapi/v3?") + origin.log.count("/openapi/v3") in (2, 3)


async def test_random_hashes_do_not_storm_the_backend() -> None:
    origin = FakeAPIServer({APPS: document(APPS)})
    slow = PollingSettings(interval=60, revalidate_interval=30)
    async with serving(origin), service(backend("a", origin.url), polling=slow) as client:
        await client.ready()
        for number in range(200):
            status, _, _ = await client.get(f"/openapi/v3/{APPS}?hash={number:032X}")
            assert status == 301
        assert origin.log.count("/openapi/v3") <= 2


async def test_slow_backend_delays_neither_the_start_nor_the_others() -> None:
    slow, quick = FakeAPIServer({APPS: document(APPS)}), FakeAPIServer({BATCH: document(BATCH)})
    slow.delay = 0.4
    async with (
        serving(slow),
        serving(quick),
        service(backend("a", slow.url), backend("b", quick.url)) as client,
    ):
        publisher = client.app.publisher
        await client.until(lambda: BATCH in publisher.current.entries)
        assert APPS not in publisher.current.entries
        assert (await client.get((await client.paths())[BATCH]))[0] == 200
        assert (await client.get("/readyz"))[0] == 503
        status, headers, _ = await client.get(f"/openapi/v3/{APPS}")
        assert (status, headers["Retry-After"]) == (503, "1")
        await client.ready()
        await client.says_ready()


async def test_no_header_of_a_client_reaches_a_backend() -> None:
    origin = FakeAPIServer({APPS: document(APPS)})
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        await client.get(
            f"/openapi/v3/{APPS}",
            Authorization="Bearer secret",
            Cookie="a=b",
            X_Remote_User="root",
            X_Other="1",
        )
        for headers in origin.headers:
            assert not {"Authorization", "Cookie", "X-Remote-User", "X-Other"} & headers.keys()


async def test_document_without_a_hash_in_the_root_gets_its_content_hash() -> None:
    origin = FakeAPIServer({APPS: document(APPS), "version": document("version")})
    origin.without_hash = {"version"}
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        url = (await client.paths())["version"]
        assert url == f"/openapi/v3/version?hash={hash_of(document('version'))}"
        assert (await client.get(url))[2] == document("version")
        origin.documents = {APPS: document(APPS), "version": document("version", "2")}
        publisher = client.app.publisher
        new = hash_of(document("version", "2"))
        await client.until(lambda: publisher.current.entries["version"].offer.hash == new)  # type: ignore[index]


async def test_polls_are_conditional_and_change_nothing_when_nothing_changed() -> None:
    origin = FakeAPIServer({APPS: document(APPS)})
    async with serving(origin), service(backend("a", origin.url), polling=QUICK) as client:
        await client.ready()
        generation = client.app.publisher.current.generation
        await client.until(lambda: origin.log.count("/openapi/v3") >= 5)
        assert client.app.publisher.current.generation == generation
        assert all("If-None-Match" in headers for headers in origin.headers[1:])
