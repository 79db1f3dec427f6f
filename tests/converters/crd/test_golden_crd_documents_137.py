"""Documents that apiextensions-apiserver 0.37.2 makes of operators' CRDs, as digests, with a whole document,
which stands for those that an apiserver of 1.37 publishes (``tests/benchmarks/go/crd_documents``)."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import orjson

from data.crd_manifests import manifests
from data.own_definitions import unequal_documents
from shared_data import DATA, needs
from specmux_converters.crd import BUNDLED, build, templates_of
from specmux_converters.document import Document

RECORDED = Path(__file__).parent / "recorded" / "documents-1.37.json.gz"


def digest(document: Document) -> str:
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


@needs("data/crds")
def test_documents_are_those_of_the_newest_release(tally: Callable[[str, int], None]) -> None:
    recorded = orjson.loads(gzip.decompress(RECORDED.read_bytes()))
    assert templates_of(recorded["source"]) == BUNDLED, "a cluster of the release has the same"
    unequal, total = [], 0
    for operator, digests in recorded["digests"].items():
        built = build(manifests(DATA / "crds" / operator)).documents
        for name, wanted in digests.items():
            total += 1
            if digest(built[name]) != wanted:
                unequal.append(f"{operator}: {name}")
    print(f"crd-documents-1.37: {total - len(unequal)} of {total}")
    tally("documents of CRDs equal to apiextensions 0.37.2", total - len(unequal))
    assert total == 37
    assert not unequal


def test_documents_of_own_definitions_are_those_of_the_newest_release(
    tally: Callable[[str, int], None],
) -> None:
    unequal, total = unequal_documents("1.37")
    tally("documents of own definitions equal to apiextensions 0.37.2", total - len(unequal))
    assert total > 250
    assert unequal == []
