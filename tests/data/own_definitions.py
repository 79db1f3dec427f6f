"""Definitions of our own, with what apiextensions-apiserver makes of them: of 0.34.1, and of 0.37.2.

``converters/crd/record_own_definitions.py`` records them.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

import orjson

from shared_data import read
from specmux_converters.crd import build, templates_for

RECORDED = Path(__file__).resolve().parents[1] / "recorded/golden/own-definitions.jsonl.gz"
RELEASES = ("1.34", "1.37")


@functools.cache
def own_clusters() -> tuple[dict[str, Any], ...]:
    """Each: "definitions"; "documents" and "v2", digests by release; "objects" with their answers."""
    return tuple(orjson.loads(line) for line in read(RECORDED).splitlines())


def digest(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def unequal_documents(release: str) -> tuple[list[str], int]:
    """Clusters of which other documents are built than recorded, and how many documents there are."""
    unequal, total = [], 0
    for number, cluster in enumerate(own_clusters()):
        built = build(cluster["definitions"], templates=templates_for(release))
        digests = {key: digest(document) for key, document in built.documents.items()}
        total += len(digests)
        if built.problems or digests != cluster["documents"][release]:
            unequal.append(f"cluster {number}: {built.problems}")
    return unequal, total
