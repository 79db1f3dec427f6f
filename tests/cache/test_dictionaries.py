"""A stored document as dictionary for its successor (RFC 9842): servers that do it right, and wrong."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import zstandard

from cache.client_setting import options
from data.deltas import FILLER, compressed, offer
from fakes.openapi_server import Reference, Reply, Request, document, hash_of, serving
from specmux_cache import AsyncSchemaCache, SchemaCache, StoreLimits
from specmux_cache.errors import BadAnswer
from specmux_cache.http.dictionaries import is_secure, permitted_id
from specmux_cache.http.server import Server
from specmux_converters.media_types import PROTOBUF

OLD = document("core", filler=FILLER * 3)  # too large to be checked in place
NEW = OLD.replace(b'"core"', b'"changed core"')
DELTA = compressed(NEW, OLD)
PATH = "/openapi/v3/api/v1"


def md5_of(body: bytes) -> str:
    return hashlib.md5(body).hexdigest()


def flipped(body: bytes) -> bytes:
    return body[:-20] + bytes([body[-20] ^ 255]) + body[-19:]


class Dictionaries(Reference):
    """Answers ``sent`` in ``coding`` to who offers a dictionary, else the document, or ``whole`` in its
    place. ``type``: of ``sent``, if it is not said as it is."""

    def __init__(
        self, sent: bytes = DELTA, coding: str = "dcz", *, hashes: Any = hash_of, type: str = ""
    ) -> None:
        super().__init__({"api/v1": OLD})
        self.sent, self.coding, self.hashes, self.type = sent, coding, hashes, type
        self.asked = 0
        self.permitted, self.whole = 'match="v1?*", id="one \\"id\\""', b""

    def hash(self, name: str) -> str:
        return str(self.hashes(self.documents[name]))

    def __call__(self, request: Request) -> Reply:
        reply: Reply = super().__call__(request)
        if request.path != PATH or reply.status != 200:
            return reply
        self.asked += 1
        fields = [*reply.headers, ("Use-As-Dictionary", self.permitted)]
        if "dcz" in request.headers["accept-encoding"]:
            if self.type:
                fields = [("Content-Type", self.type), *(one for one in fields if one[0] != "Content-Type")]
            return replace(reply, body=self.sent, headers=[*fields, ("Content-Encoding", self.coding)])
        return replace(reply, body=self.whole or reply.body, headers=fields)


async def upgraded(
    answer: Dictionaries, folder: Path, *, whole: bytes = b"", **more: Any
) -> tuple[list[Request], tuple[int, int]]:
    """The requests for the new revision, by a client with the old one; how many deltas were good, and bad."""
    kept = options(folder, limits=StoreLimits(max_body_bytes=1 << 20), stale_if_error=0)
    answer.documents, answer.whole = {"api/v1": OLD}, b""
    async with serving(answer) as server:
        async with AsyncSchemaCache(server.url, kept) as cache:
            assert (await cache.schema("v1")).body == OLD
        answer.documents, answer.whole = {"api/v1": NEW}, whole
        async with AsyncSchemaCache(server.url, kept, **more) as cache:
            schema = await cache.schema("v1")
            assert (schema.body, schema.hash, schema.from_cache) == (NEW, answer.hash("api/v1"), False)
            assert (await cache.spec("v1"))["info"]["title"] == "changed core"
            events = (await cache.stats()).events
        first, *others = server.seen(PATH)
        assert "dcz" not in first.headers["accept-encoding"]
        return others, (events["delta"], events["delta_failed"])


async def test_predecessor_is_offered_and_the_document_proven(tmp_path: Path) -> None:
    (asked,), counts = await upgraded(Dictionaries(), tmp_path)
    fields = offer(OLD, 'one \\"id\\"', "zstd, gzip, dcz")
    assert asked.headers.items() >= {name.lower(): value for name, value in fields.items()}.items()
    assert counts == (1, 0)


async def test_client_without_an_event_loop_offers_it_too(tmp_path: Path) -> None:
    answer = Dictionaries()
    async with serving(answer) as server:

        def read() -> tuple[bytes, int]:
            with SchemaCache(server.url, options(tmp_path), background=False) as cache:
                return cache.schema("v1").body, cache.stats().events["delta"]

        assert await asyncio.to_thread(read) == (OLD, 0)
        answer.documents = {"api/v1": NEW}
        assert await asyncio.to_thread(read) == (NEW, 1)


BAD: Final = {
    "another dictionary named": Dictionaries(compressed(NEW, OLD, named=NEW)),
    "no dictionary named": Dictionaries(zstandard.compress(NEW)),
    "made with another dictionary": Dictionaries(compressed(NEW, NEW, named=OLD)),
    "a flipped byte": Dictionaries(flipped(DELTA)),
    "cut short": Dictionaries(DELTA[:-30]),
    "the names alone": Dictionaries(DELTA[:40]),
    "nothing of the header": Dictionaries(DELTA[:20]),
    "another document": Dictionaries(compressed(NEW.replace(b"core", b"lies"), OLD)),
    "the predecessor": Dictionaries(compressed(OLD, OLD)),
    "a bomb": Dictionaries(compressed(b"{" + b" " * (4 << 20) + b"}", OLD)),
    "a large window": Dictionaries(compressed(NEW, OLD, window=27)),
    "two codings": Dictionaries(DELTA, "dcz, gzip"),
    "gzip that is none": Dictionaries(DELTA, "gzip"),
    "the document as another type": Dictionaries(type=PROTOBUF),
    "an unknown coding": Dictionaries(DELTA, "br"),
    "no checksum, hashes that prove nothing": Dictionaries(
        compressed(NEW, OLD, write_checksum=False), hashes=md5_of
    ),
    "no document, hashes that prove nothing": Dictionaries(compressed(b"[]", OLD), hashes=md5_of),
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
async def test_wrong_answer_costs_one_whole_document(answer: Dictionaries, tmp_path: Path) -> None:
    (offered, whole), counts = await upgraded(answer, tmp_path)
    assert "available-dictionary" in offered.headers
    assert "available-dictionary" not in whole.headers
    assert whole.headers["accept-encoding"] == "zstd, gzip"
    assert counts == (0, 1)


async def test_server_that_is_wrong_twice_is_not_asked_a_third_time(tmp_path: Path) -> None:
    answer = Dictionaries(flipped(DELTA))
    with pytest.raises(BadAnswer):
        await upgraded(answer, tmp_path, whole=b"no document")
    assert answer.asked == 3


async def test_checksum_proves_where_hashes_do_not(tmp_path: Path) -> None:
    assert (await upgraded(Dictionaries(hashes=md5_of), tmp_path))[1] == (1, 0)


@pytest.mark.parametrize(
    ("permitted", "more"),
    [
        ("", {}),
        ('match="v1?*", type=zip', {}),
        ('match="other?*"', {}),
        ('match="v1?*', {}),
        ('match="/openapi/v3/api/v1?a=*"', {}),
        ('match="v1?*"', {"headers": {"Authorization": "Bearer of-another-caller"}}),
    ],
)
async def test_what_a_server_did_not_permit_is_not_offered(
    permitted: str, more: dict[str, Any], tmp_path: Path
) -> None:
    answer = Dictionaries()
    answer.permitted = permitted
    (asked,), counts = await upgraded(answer, tmp_path, **more)
    assert "available-dictionary" not in asked.headers
    assert counts == (0, 0)


@pytest.mark.parametrize("is_same", [True, False])
async def test_imported_document_is_a_dictionary_for_its_own_server_alone(
    tmp_path: Path, *, is_same: bool
) -> None:
    answer, other = Dictionaries(), Dictionaries()
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
        ('match="v1?*", id="a"', '"a"'),
        ('id="a";x=1, match="v1?*";y="z", match-dest=("document" "style")', '"a"'),
        ('match="/p/openapi/v3/apis/*/v1"', ""),
        ('match="/p/openapi/v3/apis/apps/v1?hash=*"', ""),
        ('match="/p/*", type=raw, unknown', ""),
        ('match="*"', ""),
        ('match="v1?*", match="v2?*"', None),
        ('match="v1*x?*"', None),
        ('match="v1v1*"', None),
        ('match="/p/*/*/*/v1"', None),
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
