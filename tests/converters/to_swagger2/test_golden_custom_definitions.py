"""Against the Go reference: definitions that apiextensions-apiserver publishes in v2 for operators' CRDs.

Recorded with ``tests/benchmarks/go/openapi_v2`` as hashes: the texts are those of the operators. Of 0.34.1,
and what differs of 0.37.2 with its ``release``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import orjson
import pytest

from data.crd_manifests import manifests
from data.own_definitions import RELEASES, digest, own_clusters
from shared_data import DATA, needs
from specmux_converters.crd import build, templates_for
from specmux_converters.to_swagger2.conversion import piece_of

RECORDED = Path(__file__).parent / "recorded" / "custom-definitions.jsonl"


@pytest.mark.long
@needs("data/crds")
@pytest.mark.parametrize("release", ["1.34", "1.37"])
def test_definitions_are_those_that_an_apiserver_publishes(
    release: str, tally: Callable[[str, int], None]
) -> None:
    wanted: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for each in map(orjson.loads, RECORDED.read_bytes().splitlines()):
        place = each["crd"], each["version"], each["definition"]
        if "release" not in each:
            wanted[place].add(each["sha256"])
        elif each["release"] == release:
            wanted[place] = {each["sha256"]}
    equal: set[tuple[str, str, str]] = set()
    here = set()
    for crd in (crd for folder in sorted((DATA / "crds").iterdir()) for crd in manifests(folder)):
        for key, document in build([crd], templates=templates_for(release)).documents.items():
            here.add((crd["metadata"]["name"], key.rpartition("/")[2]))
            for name, schema in piece_of(document).definitions.items():
                place = (crd["metadata"]["name"], key.rpartition("/")[2], name)
                text = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)
                if sha256(text).hexdigest() in wanted[place]:
                    equal.add(place)
    places = {place for place, hashes in wanted.items() if hashes and place[:2] in here}
    print(f"custom-definitions-{release}: {len(equal)} of {len(places)}")
    assert places - equal == set()
    assert places
    judged = {place[:2] for place in places}
    print(f"custom-definitions-{release}: versions without a record, so not judged: {len(here - judged)}")
    tally(f"golden custom definitions in v2 of {release}: equal to Go", len(places))


@pytest.mark.parametrize("release", RELEASES)
def test_own_definitions_are_those_that_an_apiserver_publishes(
    release: str, tally: Callable[[str, int], None]
) -> None:
    unlike, total = [], 0
    for cluster in own_clusters():
        made = {
            f"{crd['metadata']['name']} {key.rpartition('/')[2]} {name}": digest(schema)
            for crd in cluster["definitions"]
            for key, document in build([crd], templates=templates_for(release)).documents.items()
            for name, schema in piece_of(document).definitions.items()
            if not name.startswith("io.k8s.")
        }
        total += len(made)
        unlike += [place for place, _ in made.items() ^ cluster["v2"][release].items()]
    tally(f"golden own definitions in v2 of {release}: equal to Go", total - len(unlike))
    assert total > 500
    assert unlike == []
