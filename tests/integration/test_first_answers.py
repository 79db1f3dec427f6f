"""What a service answers before its backends have, and what it says of itself."""

from __future__ import annotations

import asyncio

import orjson

from fakes.apiserver import FakeAPIServer, document
from running.service import backend, service


def test_an_empty_list_is_not_told_before_a_backend_has_answered() -> None:
    async def main() -> None:
        server = FakeAPIServer({"apis/apps/v1": document("apis/apps/v1")})
        server.delay = 0.4
        await server.start()
        try:
            async with service(backend("slow", server.url)) as client:
                for path in ("/openapi/v3", "/apis"):
                    status, headers, _ = await client.get(path)
                    assert (status, headers["Retry-After"]) == (503, "1"), path
                await client.ready()
                status, _, body = await client.get("/openapi/v3")
                assert (status, list(orjson.loads(body)["paths"])) == (200, ["apis/apps/v1"])
        finally:
            await server.stop()

    asyncio.run(main())


def test_the_root_says_what_this_is() -> None:
    async def main() -> None:
        server = FakeAPIServer({"apis/apps/v1": document("apis/apps/v1")})
        await server.start()
        try:
            async with service(backend("one", server.url)) as client:
                await client.says_ready()
                status, headers, body = await client.get("/")
                assert (status, headers["Content-Type"]) == (200, "application/json")
                index = orjson.loads(body)
                assert index["name"] == "specmux"
                assert [(await client.get(path))[0] for path in index["paths"]] == [200] * len(index["paths"])
        finally:
            await server.stop()

    asyncio.run(main())
