"""Fetch all documents at the same time in an event loop: async_client.py URL"""

import asyncio
import sys

from specmux_cache import AsyncSchemaCache


async def main(server: str) -> None:
    async with AsyncSchemaCache(server) as cache:
        keys = list((await cache.paths()).documents)
        schemas = await asyncio.gather(*map(cache.schema, keys))
        for key, schema in zip(keys, schemas, strict=True):
            print(key, schema.hash[:12], len(schema.body), "bytes")


asyncio.run(main(sys.argv[1]))
