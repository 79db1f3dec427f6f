"""A stored document as dictionary for its successor (RFC 9842): servers that do it right, and wrong."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import zstandard

from cache.client_setting import options
from fakes.openapi_server import Reference, Reply, Request, document, serving
from specmux_cache import AsyncSchemaCache, SchemaCache, StoreLimits
from specmux_cache.errors import BadAnswer
from specmux_cache.http.dictionaries import is_secure, permitted_id
from specmux_cache.http.server import Server

OLD = document("core", filler="".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(2000)))
NEW = OLD.replace(b'"core"', b'"changed core"')
PATH = "/openapi/v3/api/v1"
PERMITTED: Final = 'match="v1?*", id="one \\"id\\""'


def delta(
    body: bytes = NEW, dictionary: bytes = OLD, *, named: bytes | None = None, window: int = 23, **frame: Any
) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        6, window_log=window, **({"write_checksum": True} | frame)
    )
    raw = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    compressor = zstandard.ZstdCompressor(dict_data=raw, compression_params=parameters).compressobj()
    packed = compressor.compress(body) + compressor.flush()
    return bytes.fromhex("5e2a4d1820000000") + hashlib.sha256(named or dictionary).digest() + packed


def flipped(body: bytes) -> bytes:
    return body[:-20] + bytes([body[-20] ^ 255]) + body[-19:]


class Dictionaries(Reference):
    """A server that answers ``sent`` in ``coding`` to who offers a dictionary."""

    def __init__(
        self, sent: bytes, coding: str = "dcz", *, hashes: Callable[[bytes], str] | None = None
    ) -> None:
        super().__init__({"api/v1": OLD})
        self.sent, self.coding, self.hashes = sent, coding, hashes
        self.permitted: str | None = PERMITTED
        self.whole: bytes | None = None

    def hash(self, name: str) -> str:
        return super().hash(name) if self.hashes is None else self.hashes(self.documents[name])

    def __call__(self, request: Request) -> Reply:
        reply: Reply = super().__call__(request)
        if request.path != PATH or reply.status != 200:
            return reply
        fields = [] if self.permitted is None else [("Use-As-Dictionary", self.permitted)]
        if "dcz" in request.headers["accept-encoding"]:
            reply = replace(
                reply, body=self.sent, headers=[*reply.headers, ("Content-Encoding", self.coding)]
            )
        elif self.whole is not None:
            reply = replace(reply, body=self.whole)
        return replace(reply, headers=[*reply.headers, *fields])


async def test_predecessor_is_offered_and_the_document_proven(tmp_path: Path) -> None:
    answer = Dictionaries(delta())
    async with serving(answer) as server, AsyncSchemaCache(server.url, options(tmp_path)) as cache:
        assert (await cache.schema("v1")).body == OLD
        assert "available-dictionary" not in server.seen(PATH)[0].headers
        assert "dcz" not in server.seen(PATH)[0].headers["accept-encoding"]
        answer.documents = {"api/v1": NEW}
        schema = await cache.schema("v1")
        assert (schema.body, schema.hash, schema.from_cache) == (NEW, answer.hash("api/v1"), False)
        asked = server.seen(PATH)[1:]
        assert len(asked) == 1
        digest = b64encode(hashlib.sha256(OLD).digest()).decode()
        assert asked[0].headers["available-dictionary"] == f":{digest}:"
        assert asked[0].headers["dictionary-id"] == '"one \\"id\\""'
        assert asked[0].headers["accept-encoding"] == "zstd, gzip, dcz"
        events = (await cache.stats()).events
        assert (events["delta"], events["delta_failed"]) == (1, 0)
        assert (await cache.schema("v1")).from_cache
        assert (await cache.spec("v1"))["info"]["title"] == "changed core"


async def test_client_without_an_event_loop_offers_it_too(tmp_path: Path) -> None:
    import asyncio

    answer = Dictionaries(delta())
    async with serving(answer) as server:

        def read() -> tuple[bytes, int]:
            with SchemaCache(server.url, options(tmp_path), background=False) as cache:
                return cache.schema("v1").body, cache.stats().events["delta"]

        assert await asyncio.to_thread(read) == (OLD, 0)
        answer.documents = {"api/v1": NEW}
        assert await asyncio.to_thread(read) == (NEW, 1)


BAD: Final = {
    "another dictionary named": Dictionaries(delta(named=NEW)),
    "no dictionary named": Dictionaries(zstandard.compress(NEW)),
    "made with another dictionary": Dictionaries(delta(dictionary=NEW, named=OLD)),
    "a flipped byte": Dictionaries(flipped(delta())),
    "cut short": Dictionaries(delta()[:-30]),
    "the names alone": Dictionaries(delta()[:40]),
    "nothing of the header": Dictionaries(delta()[:20]),
    "another document": Dictionaries(delta(NEW.replace(b"core", b"lies"))),
    "the predecessor": Dictionaries(delta(OLD)),
    "a bomb": Dictionaries(delta(b"{" + b" " * (4 << 20) + b"}")),
    "a large window": Dictionaries(delta(window=27)),
    "two codings": Dictionaries(delta(), "dcz, gzip"),
    "gzip that is none": Dictionaries(delta(), "gzip"),
    "an unknown coding": Dictionaries(delta(), "br"),
    "no checksum, hashes that prove nothing": Dictionaries(
        delta(write_checksum=False), hashes=lambda body: hashlib.md5(body).hexdigest()
    ),
    "no document, hashes that prove nothing": Dictionaries(
        delta(b"[]"), hashes=lambda body: hashlib.md5(body).hexdigest()
    ),
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
async def test_wrong_answer_costs_one_whole_document(answer: Dictionaries, tmp_path: Path) -> None:
    answer.documents, answer.whole = {"api/v1": OLD}, None
    limited = options(tmp_path, limits=StoreLimits(max_body_bytes=1 << 20), stale_if_error=0)
    async with serving(answer) as server, AsyncSchemaCache(server.url, limited) as cache:
        assert (await cache.schema("v1")).body == OLD
        answer.documents = {"api/v1": NEW}
        assert (await cache.schema("v1")).body == NEW
        _, offered, whole = server.seen(PATH)
        assert "available-dictionary" in offered.headers
        assert "available-dictionary" not in whole.headers
        assert whole.headers["accept-encoding"] == "zstd, gzip"
        events = (await cache.stats()).events
        assert (events["delta"], events["delta_failed"]) == (0, 1)


async def test_server_that_is_wrong_twice_is_not_asked_a_third_time(tmp_path: Path) -> None:
    answer = Dictionaries(flipped(delta()))
    strict = options(tmp_path, stale_if_error=0)
    async with serving(answer) as server, AsyncSchemaCache(server.url, strict) as cache:
        await cache.schema("v1")
        answer.documents, answer.whole = {"api/v1": NEW}, b"no document"
        with pytest.raises(BadAnswer):
            await cache.schema("v1")
        assert len(server.seen(PATH)) == 3


async def test_checksum_proves_where_hashes_do_not(tmp_path: Path) -> None:
    answer = Dictionaries(delta(), hashes=lambda body: hashlib.md5(body).hexdigest())
    async with serving(answer) as server, AsyncSchemaCache(server.url, options(tmp_path)) as cache:
        await cache.schema("v1")
        answer.documents = {"api/v1": NEW}
        assert (await cache.schema("v1")).body == NEW
        assert len(server.seen(PATH)) == 2


@pytest.mark.parametrize(
    "permitted",
    [None, "", 'match="v1?*", type=zip', 'match="other?*"', 'match="v1?*', 'match="/openapi/v3/api/v1?a=*"'],
)
async def test_what_a_server_did_not_permit_is_not_offered(permitted: str | None, tmp_path: Path) -> None:
    answer = Dictionaries(delta())
    answer.permitted = permitted
    async with serving(answer) as server, AsyncSchemaCache(server.url, options(tmp_path)) as cache:
        await cache.schema("v1")
        answer.documents = {"api/v1": NEW}
        assert (await cache.schema("v1")).body == NEW
        assert not any("available-dictionary" in request.headers for request in server.requests)


async def test_dictionary_of_another_caller_is_not_offered(tmp_path: Path) -> None:
    answer = Dictionaries(delta())
    async with serving(answer) as server:
        for token in ("one", "another"):
            headers = {"Authorization": f"Bearer {token}"}
            async with AsyncSchemaCache(server.url, options(tmp_path), headers=headers) as cache:
                await cache.schema("v1")
            answer.documents = {"api/v1": NEW}
        assert not any("available-dictionary" in request.headers for request in server.requests)


@pytest.mark.parametrize("is_same", [True, False])
async def test_imported_document_is_a_dictionary_for_its_own_server_alone(
    tmp_path: Path, *, is_same: bool
) -> None:
    answer, other = Dictionaries(delta()), Dictionaries(delta())
    async with serving(answer) as first, serving(other) as second:
        async with AsyncSchemaCache(first.url, options(tmp_path)) as cache:
            await cache.schema("v1")
            await cache.export(tmp_path / "bundle")
        answer.documents = other.documents = {"api/v1": NEW}
        server = first if is_same else second
        async with AsyncSchemaCache(server.url, options(tmp_path / "new")) as cache:
            assert await cache.import_(tmp_path / "bundle") >= 1
            assert (await cache.schema("v1")).body == NEW
            assert (await cache.stats()).events["delta"] == is_same


@pytest.mark.parametrize(
    ("field", "id_"),
    [
        ('match="v1?*"', ""),
        ('match="v1?*", id="a"', "a"),
        ('id="a";x=1, match="v1?*";y="z", match-dest=("document" "style")', "a"),
        ('match="/p/openapi/v3/apis/*/v1"', ""),
        ('match="/p/openapi/v3/apis/apps/v1?hash=*"', ""),
        ('match="/p/*", type=raw, unknown', ""),
        ('match="*"', ""),
        ('match="v1?*", match="v2?*"', None),
        ('match="v1*x?*"', None),
        ('match="v1v1*"', None),
        ('match="/openapi/v3/apis/apps/v1?*"', None),
        ('match="https://another.example.org/*"', None),
        ('match="/p/openapi/v3/apis/:group/v1"', None),
        ('match="/p/(.*)"', None),
        ("match=v1", None),
        ('match="v1?*" id="a"', None),
        ('match="v1?*", type="raw"', None),
        (f'match="v1?*", id="{"a" * 1025}"', None),
        ('match="v1?*", id="é"', None),
        ('match=""', None),
    ],
)
def test_field_permits(field: str, id_: str | None) -> None:
    assert permitted_id(field, "/p/openapi/v3/apis/apps/v1?hash=AB") == id_


@pytest.mark.parametrize(
    ("url", "is_so"),
    [
        ("https://example.org", True),
        ("http://localhost:8080", True),
        ("http://127.0.0.1:1", True),
        ("http://[::1]", True),
        ("http://example.org", False),
        ("http://localhost.example.org", False),
        ("http://127.example.org", False),
    ],
)
def test_dictionaries_are_for_https_and_for_this_machine(url: str, is_so: bool) -> None:
    assert is_secure(Server.parse(url)) is is_so
