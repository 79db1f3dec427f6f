"""Carry documents to a machine without a network: offline_bundle.py URL FILE"""

import sys

from specmux_cache import CacheOptions, SchemaCache

server, file = sys.argv[1:]
with SchemaCache(server, timeout=30) as cache:
    cache.prefetch()
    print(cache.export(file), "entries exported")
with SchemaCache(server, CacheOptions(directory=None, offline=True)) as cache:
    print(cache.import_(file), "entries imported;", *cache.paths().documents)
