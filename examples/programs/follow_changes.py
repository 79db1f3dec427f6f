"""Print the first change that a server publishes: follow_changes.py URL"""

import sys

from specmux_cache import CacheOptions, SchemaCache

with SchemaCache(sys.argv[1], CacheOptions(directory=None)) as cache:
    for publication in cache.follow(interval=0.1):
        print(publication.group_version, "is gone" if publication.hash is None else publication.hash)
        break
