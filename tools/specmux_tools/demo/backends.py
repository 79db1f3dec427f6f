"""The demonstration's apiservers: small, but real HTTP on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import orjson
from aiohttp import web

from specmux_converters.document import Document, canonical, content_hash


def v3_application(documents: Mapping[str, Document]) -> web.Application:
    """An apiserver that publishes OpenAPI v3: a root of hash URLs, and documents that redirect a stale
    hash."""
    bodies = {key: canonical(document) for key, document in documents.items()}
    hashes = {key: content_hash(body) for key, body in bodies.items()}

    async def root(request: web.Request) -> web.Response:
        paths = {key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={hashes[key]}"} for key in bodies}
        return web.json_response(body=orjson.dumps({"paths": paths}))

    async def document(request: web.Request) -> web.Response:
        key = request.match_info["key"]
        if key not in bodies:
            raise web.HTTPNotFound
        if request.query.get("hash", hashes[key]) != hashes[key]:
            raise web.HTTPMovedPermanently(f"/openapi/v3/{key}?hash={hashes[key]}")
        return web.json_response(body=bodies[key], headers={"ETag": f'"{hashes[key]}"'})

    application = web.Application()
    application.router.add_get("/openapi/v3", root)
    application.router.add_get("/openapi/v3/{key:.+}", document)
    return application


def v2_application(document: Document) -> web.Application:
    """An apiserver of the time before OpenAPI v3: one Swagger 2.0 document, and 404 for all else."""
    body = canonical(document)

    async def swagger(request: web.Request) -> web.Response:
        return web.json_response(body=body, headers={"ETag": f'"{content_hash(body)}"'})

    application = web.Application()
    application.router.add_get("/openapi/v2", swagger)
    return application


@asynccontextmanager
async def serving(application: web.Application) -> AsyncIterator[str]:
    """Serve the application on a free port of loopback for as long as the context lasts; gives its URL."""
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
