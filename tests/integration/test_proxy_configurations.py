"""The configurations of docs/proxies: a coding that the client refuses is not what it gets."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import aiohttp
import pytest
from yarl import URL

from specmux_aggregator.http.messages import Coding
from specmux_aggregator.http.negotiation import coding_for
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
