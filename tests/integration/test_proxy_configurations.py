"""The configurations of docs/proxies: a client gets no coding that it refuses, nor another's dictionary."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import zstandard
from yarl import URL

from data.deltas import FILLER, decompressed, offer
from deadline import DEADLINE
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.http.negotiation import coding_for
from specmux_cache import AsyncSchemaCache, CacheOptions
from specmux_converters.document import canonical, content_hash
from stress.replicas import PROXIES, Replica, nginx, nginx_in_front, varnish, varnish_in_front

ASKED: Final = {
    None: "identity",
    "gzip": "gzip",
    "gzip, zstd": "zstd",
    "gzip;q=0": "identity",
    "gzip;q=0, identity": "identity",
    "gzip; q=0.000": "identity",
    "GZIP ; Q=0 , deflate": "identity",
    "zstd;q=0, gzip": "gzip",
    "gzip;q=0,zstd;q=0.5": "zstd",
    "gzip;q=0.1": "gzip",
    "gzip;q=0.001": "gzip",
    "zstd;q=0.0, gzip;q=0.0": "identity",
    "x-zstdx, gzipped": "identity",
    "deflate, gzip;q=1.0, *;q=0.5": "gzip",
}


PLAIN: Final = {"Accept-Encoding": "identity"}


def patterns(name: str) -> list[re.Pattern[str]]:
    """What stands for zstd, and for gzip, in a configuration."""
    text = (PROXIES / name).read_text()
    found = re.findall(r'"(?:~\*|\(\?i\))([^"\n]*(?:zstd|gzip)[^"\n]*)"', text)
    assert len(found) == 2, found
    return [re.compile(each, re.IGNORECASE) for each in found]


@pytest.mark.parametrize("name", ["nginx.conf", "varnish.vcl"])
@pytest.mark.parametrize(("asked", "coding"), ASKED.items(), ids=str)
def test_pattern_knows_what_is_refused(name: str, asked: str | None, coding: str) -> None:
    zstd, gzip = patterns(name)
    found = "zstd" if zstd.search(asked or "") else "gzip" if gzip.search(asked or "") else "identity"
    assert found == coding
    if found != "identity":
        assert coding_for(asked) is not Coding.IDENTITY


@pytest.mark.parametrize(
    ("program", "front"),
    [
        pytest.param(nginx, lambda folder, one: nginx_in_front(folder, [one, one, one]), id="nginx"),
        pytest.param(varnish, varnish_in_front, id="varnish"),
    ],
)
def test_proxy_gives_no_coding_that_was_refused(
    tmp_path: Path,
    program: Callable[[], str | None],
    front: Callable[[Path, Replica], AbstractAsyncContextManager[int]],
) -> None:
    if program() is None:
        pytest.skip("wants nginx and varnishd: apt-get install nginx-light varnish")
    if program is varnish and shutil.which("gcc") is None:
        pytest.skip("Varnish wants a C compiler: apt-get install gcc")
    folder = tmp_path / "documents"
    (folder / "apis/example.com").mkdir(parents=True)
    body = {"openapi": "3.0.0", "info": {"title": "t" * 5000, "version": "1"}, "paths": {}}
    (folder / "apis/example.com/v1.json").write_text(json.dumps(body))
    config = f"backends:\n- {{name: a, kind: directory, directory: {folder}}}\n"

    async def scenario() -> dict[str | None, str]:
        replica = Replica(tmp_path, 1, config=config)
        try:
            await replica.start()
            async with (
                front(tmp_path, replica) as port,
                aiohttp.ClientSession(auto_decompress=False) as session,
            ):
                base = f"http://127.0.0.1:{port}"
                async with session.get(f"{base}/openapi/v3", headers=PLAIN) as answer:
                    paths = (await answer.json(content_type=None))["paths"]
                url = URL(base + paths["apis/example.com/v1"]["serverRelativeURL"], encoded=True)
                found: dict[str | None, str] = {}
                for asked in ASKED:
                    fields = {} if asked is None else {"Accept-Encoding": asked}
                    async with session.get(
                        url, headers=fields, skip_auto_headers=["Accept-Encoding"]
                    ) as answer:
                        assert answer.status == 200
                        await answer.read()
                        found[asked] = answer.headers.get("Content-Encoding", "identity")
                return found
        finally:
            await replica.end()

    assert asyncio.run(scenario()) == ASKED


def as_shipped(text: str) -> str:
    return text


def nginx_with_all_codings(text: str) -> str:
    """Whatever clients accept reaches the service, and nginx compresses what is not."""
    text = text.replace("Accept-Encoding $coding;", "Accept-Encoding $http_accept_encoding;")
    return text.replace("access_log off;", "access_log off; gzip on; gzip_proxied any; gzip_types *;")


def varnish_with_all_codings(text: str) -> str:
    return re.sub(r"sub vcl_recv \{.*?\n\}\n", "", text, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("front", "edit", "has_dictionaries"),
    [
        pytest.param(nginx, as_shipped, False, id="nginx as shipped"),
        pytest.param(nginx, nginx_with_all_codings, True, id="nginx with all codings"),
        pytest.param(varnish, as_shipped, False, id="varnish as shipped"),
        pytest.param(varnish, varnish_with_all_codings, True, id="varnish with all codings"),
    ],
)
def test_proxy_gives_the_right_bytes_or_no_dictionary(
    tmp_path: Path, front: Callable[[], str | None], edit: Callable[[str], str], *, has_dictionaries: bool
) -> None:
    if front() is None or (front is varnish and shutil.which("gcc") is None):
        pytest.skip("wants nginx, varnishd and gcc: apt-get install nginx-light varnish gcc")
    file = tmp_path / "documents/apis/example.com/v1.json"
    file.parent.mkdir(parents=True)

    def write(number: int) -> bytes:
        tree = {"openapi": "3.0.0", "info": {"title": f"{number}", "version": FILLER}, "paths": {}}
        file.write_text(json.dumps(tree))
        return canonical(tree)

    async def scenario() -> None:
        config = f"backends:\n- {{name: a, kind: directory, directory: {tmp_path}/documents}}\n"
        config += "changes: {settle: 0.1}\ndictionaries: {wait: 30}\n"
        revisions = [write(0)]
        replica = Replica(tmp_path, 1, config=config)
        before = (
            nginx_in_front(tmp_path, [replica] * 3, edit=edit)
            if front is nginx
            else varnish_in_front(tmp_path, replica, edit=edit)
        )
        try:
            await replica.start()
            async with before as port, aiohttp.ClientSession(auto_decompress=False) as session:
                base = f"http://127.0.0.1:{port}"
                cached = AsyncSchemaCache(base, CacheOptions(tmp_path / "cache"))
                async with asyncio.timeout(DEADLINE), cached as cache:
                    hashes = [(await cache.schema("example.com/v1")).hash]
                    for number in (1, 2):
                        await kept(session, replica, hashes[-1])
                        revisions.append(write(number))
                        hashes.append(content_hash(revisions[-1]))
                        while (await cache.paths()).documents["apis/example.com/v1"].hash != hashes[-1]:
                            await asyncio.sleep(0.1)
                        assert (await cache.schema("example.com/v1")).body == revisions[-1]
                    events = (await cache.stats()).events
                    assert (events["delta"], events["delta_failed"]) == (2 * has_dictionaries, 0)
                url = URL(f"{base}/openapi/v3/apis/example.com/v1?hash={hashes[-1]}", encoded=True)
                for offered in (None, 0, 1, None, 1, 0, 0):
                    for codings in ("gzip, zstd, dcz", "gzip", "identity", "zstd, gzip"):
                        fields = {"Accept-Encoding": codings}
                        if offered is not None:
                            fields = offer(revisions[offered], hashes[offered], codings)
                        async with session.get(url, headers=fields) as answer:
                            coding = answer.headers.get("Content-Encoding", "identity")
                            body = await answer.read()
                        assert coding in codings
                        is_delta = offered is not None and "dcz" in codings and has_dictionaries
                        assert (coding == "dcz") is is_delta
                        dictionary = revisions[offered] if offered is not None and is_delta else b""
                        assert plain(body, coding, dictionary) == revisions[-1]
        finally:
            await replica.end()

    asyncio.run(scenario())


async def kept(session: aiohttp.ClientSession, replica: Replica, hash: str) -> None:
    """Return once this document is kept as a predecessor: asked for with it, it is not unknown."""
    fields = offer(b"another", hash, "dcz")
    url = f"http://127.0.0.1:{replica.port}"
    counts: list[str] = []
    while len(set(counts)) < 2:
        async with session.get(f"{url}/metrics", headers=PLAIN) as answer:
            counts += re.findall(r'offers_total\{result="mismatched"\} (\S+)', await answer.text())
        async with session.get(f"{url}/openapi/v3/apis/example.com/v1", headers=fields) as answer:
            assert answer.status == 200
        await asyncio.sleep(0.1)


def plain(body: bytes, coding: str, dictionary: bytes) -> bytes:
    match coding:
        case "gzip":
            return gzip.decompress(body)
        case "zstd":
            return zstandard.decompress(body)
        case "dcz":
            return decompressed(body, dictionary)
    return body
