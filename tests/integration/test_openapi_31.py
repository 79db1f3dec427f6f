"""Backends that serve OpenAPI 3.1: clients get 3.0 in every form, and what that lost is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from fakes.apiserver import FakeAPIServer, document, serving
from running.service import Client, backend, service
from specmux_aggregator.http.content_codings import decode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.workers.worker import Worker
from specmux_converters.codecs import decode
from specmux_converters.document import Limits
from specmux_converters.media_types import CBOR, JSON, PROTOBUF

OLD, NEW = "apis/old.example.org/v1", "apis/new.example.org/v1"
THING = {
    "type": "object",
    "properties": {"name": {"type": ["string", "null"], "const": "a"}, "pair": {"prefixItems": [{}, {}]}},
    "if": {"required": ["name"]},
}
LOST = ("/components/schemas/Thing/properties/pair/prefixItems", "/components/schemas/Thing/if")


def openapi_31(key: str, note: str = "1", thing: Any = THING, *, is_last: bool = False) -> bytes:
    """``is_last``: the version stands at the end."""
    tree = {**orjson.loads(document(key, note)), "components": {"schemas": {"Thing": thing}}}
    del tree["openapi"]
    version = {"openapi": "3.1.1"}
    return orjson.dumps({**tree, **version} if is_last else {**version, **tree})


async def in_every_form(client: Client, key: str) -> list[Any]:
    """The document as JSON, Protobuf and CBOR, each with an ETag of its own."""
    target = (await client.paths())[key]
    found, etags = [], set()
    for media_type in (JSON, PROTOBUF, CBOR):
        code, headers, body = await client.get(target, Accept=media_type)
        assert code == 200, (media_type, code, body)
        etags.add(headers["ETag"])
        found.append(decode(body, media_type, limits=Limits()))
    assert len(etags) == 3
    return found


async def losses_of(client: Client, key: str) -> dict[str, Any]:
    """What /status says of a document once the check after its fetch is over."""
    await client.until(lambda: bool(client.app.publisher.current.entries[key].offer.losses), "losses")  # type: ignore[index]
    return dict((await client.status())["groupVersions"][key])


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("has_hash", [True, False])
async def test_31_is_served_as_30_in_every_form(has_hash: bool, is_last: bool) -> None:
    origin = FakeAPIServer({NEW: openapi_31(NEW, is_last=is_last), OLD: document(OLD)})
    origin.without_hash = set() if has_hash else {NEW}
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        for made in await in_every_form(client, NEW):
            assert made["openapi"] == "3.0.3"
            name = made["components"]["schemas"]["Thing"]["properties"]["name"]
            assert name == {"type": "string", "enum": ["a"]}, name
        status = await losses_of(client, NEW)
        assert status["losses"] == len(LOST)
        assert all(any(text.startswith(place) for text in status["lossExamples"]) for place in LOST)
        code, headers, _ = await client.get((await client.paths())[NEW])
        assert (code, headers["Specmux-Losses"]) == (200, str(len(LOST)))
        assert (await client.get((await client.paths())[OLD]))[2] == document(OLD)


async def test_change_of_31_is_published_and_counted_anew() -> None:
    origin = FakeAPIServer({NEW: openapi_31(NEW)})
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        before = (await client.paths())[NEW]
        await client.get(before)
        await losses_of(client, NEW)
        origin.documents = {NEW: openapi_31(NEW, "2", {"not": True})}
        entries = client.app.publisher
        await client.until(lambda: entries.current.entries[NEW].offer.hash not in before)  # type: ignore[index]
        assert (await in_every_form(client, NEW))[0]["components"]["schemas"]["Thing"] == {"not": {}}
        assert (await client.status())["groupVersions"][NEW]["losses"] == 0
        origin.documents = {NEW: document(NEW)}
        held = (await client.paths())[NEW]
        await client.until(lambda: entries.current.entries[NEW].offer.hash not in held)  # type: ignore[index]
        assert (await client.get((await client.paths())[NEW]))[2] == document(NEW)


@pytest.mark.parametrize("has_hash", [True, False])
async def test_32_is_refused_in_status_and_costs_no_other(has_hash: bool) -> None:
    later = openapi_31(NEW).replace(b'"3.1.1"', b'"3.2.0"')
    origin = FakeAPIServer({OLD: document(OLD), NEW: later})
    origin.without_hash = set() if has_hash else {NEW}
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        if has_hash:
            code, _, body = await client.get((await client.paths())[NEW])
            assert code == 503
            assert b"(bad_body)" in body  # the rest is told to operators: /status
        await client.until(lambda: bool(client.app.publisher.current.observations["a"].notes), "a note")  # type: ignore[index]
        (note,) = (await client.status())["backends"]["a"]["notes"]
        assert note.startswith(f"{NEW}: ")
        assert note.endswith("OpenAPI 3.2.0 is not read: write 3.0 or 3.1")
        assert (await client.get((await client.paths())[OLD]))[2] == document(OLD)


@pytest.mark.parametrize("has_hash", [True, False])
async def test_31_that_cannot_be_lowered_fails_in_status_and_costs_no_other(has_hash: bool) -> None:
    origin = FakeAPIServer({OLD: document(OLD)})
    text = b'{"openapi":"3.1.0","info":{},"paths":{},"components":{"schemas":{"Thing":' + b'{"not":' * 3000
    origin.documents = {OLD: document(OLD), NEW: text + b"true" + b"}" * 3003}
    origin.without_hash = set() if has_hash else {NEW}
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        if has_hash:
            code, _, body = await client.get((await client.paths())[NEW])
            assert code in (502, 503), body
        await client.until(lambda: bool(client.app.publisher.current.observations["a"].notes), "a note")  # type: ignore[index]
        (note,) = (await client.status())["backends"]["a"]["notes"]
        assert note.startswith(f"{NEW}: ")
        assert "cannot be read as OpenAPI 3.0" in note or not has_hash
        assert (await client.get((await client.paths())[OLD]))[2] == document(OLD)


async def test_restart_serves_what_was_lowered_with_its_losses(tmp_path: Path) -> None:
    origin = FakeAPIServer({NEW: openapi_31(NEW)})
    async with serving(origin):
        async with service(backend("a", origin.url), state=tmp_path) as client:
            await client.ready()
            await in_every_form(client, NEW)
            await losses_of(client, NEW)
        asked = origin.count(f"/openapi/v3/{NEW}")
        async with service(backend("a", origin.url), state=tmp_path) as client:
            await client.ready()
            assert (await in_every_form(client, NEW))[0]["openapi"] == "3.0.3"
            assert (await losses_of(client, NEW))["losses"] == len(LOST)
        assert origin.count(f"/openapi/v3/{NEW}") == asked


@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_document_of_30_is_read_without_a_worker_in_the_coding_that_the_client_wants(
    coding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = {"type": "object", "description": "x" * 100_000}
    tree = {"components": {"schemas": {"Thing": large}}, **orjson.loads(document(OLD))}  # not the first key
    origin = FakeAPIServer({OLD: orjson.dumps(tree)})
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()

        async def run(self: Worker, *arguments: Any, **options: Any) -> Any:
            raise AssertionError("a worker was asked")

        monkeypatch.setattr(Worker, "run", run)
        code, _, body = await client.get((await client.paths())[OLD], Accept_Encoding=coding)
        assert code == 200
        assert decode_body(body, Coding(coding), max_bytes=1 << 20) == orjson.dumps(tree)
        asked = [
            fields["Accept-Encoding"]
            for line, fields in zip(origin.log, origin.headers, strict=True)
            if line.startswith(f"/openapi/v3/{OLD}")
        ]
        assert [value for value in asked if (value == "identity") != (coding == "identity")] == []
        monkeypatch.undo()
