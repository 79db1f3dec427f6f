"""Against the Go reference: definitions that apiextensions-apiserver publishes in v2 for operators' CRDs.

Recorded with ``tests/benchmarks/go/openapi_v2`` (apiextensions-apiserver 0.34.1) as hashes: the texts are
those of the operators.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import orjson

from data.crd_manifests import manifests
from shared_data import DATA, shared
from specmux_converters.crd import build
from specmux_converters.openapi2.conversion import piece_of

RECORDED = Path(__file__).parent / "recorded" / "custom-definitions.jsonl"


@shared
def test_definitions_are_those_that_an_apiserver_publishes(tally: Callable[[str, int], None]) -> None:
    wanted: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for line in RECORDED.read_bytes().splitlines():
        each = orjson.loads(line)
        wanted[each["crd"], each["version"], each["definition"]].add(each["sha256"])
    equal: set[tuple[str, str, str]] = set()
    for crd in (crd for folder in sorted((DATA / "crds").iterdir()) for crd in manifests(folder)):
        for key, document in build([crd]).documents.items():
            for name, schema in piece_of(document).definitions.items():
                place = (crd["metadata"]["name"], key.rpartition("/")[2], name)
                text = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)
                if sha256(text).hexdigest() in wanted[place]:
                    equal.add(place)
    places = {place for place, hashes in wanted.items() if hashes}
    print(f"custom-definitions: {len(equal)} of {len(places)}")
    assert places - equal == set()
    assert len(places) > 200
    tally("golden custom definitions in v2: equal to Go", len(places))
