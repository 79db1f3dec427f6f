"""What a service answers before its backends have, and what it says of itself."""

from __future__ import annotations

import asyncio

import orjson

from fakes.apiserver import FakeAPIServer, document
from running.service import backend, service

WITH_ARGUMENTS = {"/openapi/explain", "/openapi/search", "/openapi/ui"}
"""They are asked with what to explain or to search; the page leads on to its folder."""


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
                asked = [path for path in index["paths"] if path not in WITH_ARGUMENTS]
                assert len(asked) < len(index["paths"])
                assert [(await client.get(path))[0] for path in asked] == [200] * len(asked)
        finally:
            await server.stop()

    asyncio.run(main())
