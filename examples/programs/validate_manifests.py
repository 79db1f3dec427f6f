"""Validate manifests against a cluster's documents: validate_manifests.py URL FILE"""

import sys
from pathlib import Path

from specmux_cache import SchemaCache
from specmux_tools import validate

server, file = sys.argv[1:]
with SchemaCache(server) as cache:
    documents = {key: cache.spec(key) for key in cache.paths().documents}
reports = validate(documents, Path(file).read_bytes())
for report in reports:
    for violation in report.violations:
        print(f"{file}:{violation.line}: {report.full_name}: {violation.message}")
sys.exit(not all(report.is_valid and report.is_complete for report in reports))
