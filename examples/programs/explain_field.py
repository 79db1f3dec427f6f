"""Explain a field of a cluster's API: explain_field.py URL deployments.spec.replicas"""

import sys

from specmux_cache import SchemaCache
from specmux_tools import SchemasError, explain

server, subject = sys.argv[1:]
with SchemaCache(server) as cache:
    documents = {key: cache.spec(key) for key in cache.paths().documents}
try:
    print(explain(documents, subject), end="")
except SchemasError as error:
    sys.exit(f"{subject}: {error}")
