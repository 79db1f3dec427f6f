"""The package has the kinds of a real apiserver of that release, and judges objects as its documents do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.binaries import VERSION
from cluster.control_plane import ControlPlane
from fakes.mutated_objects import mutants, skeletons
from specmux_aggregator.built_in_releases import built_in_releases
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.references import schemas_of
from specmux_converters.release_documents import facts_of
from specmux_tools.kinds import DocumentSet
from specmux_tools.sources.releases import ReleaseSource
from specmux_tools.validation import Validator

pytestmark = pytest.mark.timeout(900)

RELEASE = VERSION.removeprefix("v").rpartition(".")[0]
EACH = 30
"""Mutants of each kind's skeleton: 2,000 objects and more, for an apiserver serves 70 kinds by default."""


def test_verdicts_are_those_of_the_apiservers_documents(
    plane: ControlPlane, tally: Callable[[str, int], None]
) -> None:
    paths = plane.json("/openapi/v3")["paths"]
    keys = [key for key in built_in_releases().group_versions(RELEASE) if key in paths and split(key)]
    served = DocumentSet({GroupVersion(key): plane.json(paths[key]["serverRelativeURL"]) for key in keys})
    own = ReleaseSource(RELEASE).load(keys).documents
    for key in keys:
        assert schemas_of(facts_of(served.documents[key])) == schemas_of(own.documents[key]), key
    judges = [Validator(documents, release=RELEASE) for documents in (served, own)]
    judged = valid = 0
    for data in mutants(skeletons(served), each=EACH):
        verdicts = [
            [(each.as_document(), each.fatal) for each in judge.validate_all(data, "application/json")]
            for judge in judges
        ]
        assert verdicts[0] == verdicts[1], data
        judged += len(verdicts[0])
        valid += sum(not fatal and not each["violations"] for each, fatal in verdicts[0])
    tally(f"objects judged alike by the kinds of {RELEASE} and by an apiserver's documents", judged)
    assert judged >= 2000
    assert 0 < valid < judged
