"""Find fields and kinds by words: search_fields.py URL "replicas of a deployment" """

import sys

from specmux_cache import SchemaCache
from specmux_tools import search

server, words = sys.argv[1:]
with SchemaCache(server) as cache:
    documents = {key: cache.spec(key) for key in cache.paths().documents}
found = search(documents, words, limit=5)
for hit in found.rows:
    print(hit.api_version, hit.kind_name, hit.field, hit.summary)
print(f"{len(found.rows)} of {found.total} results")
