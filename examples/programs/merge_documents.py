"""Merge all group-versions into one document: merge_documents.py URL"""

import sys

from specmux_cache import SchemaCache

with SchemaCache(sys.argv[1]) as cache:
    merged = cache.merge()
paths, components = merged.document["paths"], merged.document["components"]
assert isinstance(paths, dict) and isinstance(components, dict)
print(len(paths), "paths,", len(components["schemas"]), "schemas")
