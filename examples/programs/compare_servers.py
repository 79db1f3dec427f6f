"""Compare two servers and fail on breaking changes: compare_servers.py OLD_URL NEW_URL"""

import sys
from collections.abc import Mapping
from typing import Any

from specmux_cache import SchemaCache
from specmux_tools import diff


def documents_of(server: str) -> dict[str, Mapping[str, Any]]:
    with SchemaCache(server) as cache:
        return {key: cache.spec(key) for key in cache.paths().documents}


changes = diff(*map(documents_of, sys.argv[1:]))
for change in changes:
    print(change.severity.word, change.location, change.message)
sys.exit(any(change.severity.word == "breaking" for change in changes))
