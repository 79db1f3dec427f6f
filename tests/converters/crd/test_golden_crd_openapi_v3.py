"""Against the Go reference: the documents that upstream's builder makes of operators' CRDs, deep-equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from data.crd_manifests import manifests
from data.own_definitions import unequal_documents
from shared_data import DATA, GOLDEN, load, needs, recorded_release
from specmux_converters.crd import build, templates_for
from specmux_converters.group_versions import GroupVersion

FOLDER = GOLDEN / "crd-openapi-v3"


def recorded(operator: Path) -> Iterator[tuple[GroupVersion, Path]]:
    for path in sorted(operator.rglob("*.json*")):
        key = str(path.relative_to(operator)).removesuffix(".gz").removesuffix(".json")
        yield GroupVersion(key), path


def unequal_of(operator: Path) -> Iterator[str]:
    """Recorded documents that are built otherwise, and problems where upstream has none."""
    built = build(manifests(DATA / "crds" / operator.name), templates=templates_for(recorded_release(FOLDER)))
    for group_version, path in recorded(operator):
        if built.documents.get(group_version) != load(path):
            yield f"{operator.name}: {group_version}"
    for problem in built.problems:
        yield f"{operator.name}: {problem}"


@needs("data/crds", "golden/crd-openapi-v3")
def test_every_recorded_document_is_built(tally: Callable[[str, int], None]) -> None:
    operators = sorted(path for path in FOLDER.iterdir() if path.is_dir())
    total = sum(len(list(recorded(operator))) for operator in operators)
    unequal = [each for operator in operators for each in unequal_of(operator)]
    print(f"crd-openapi-v3: {total - len(unequal)} of {total}")
    assert total
    assert not unequal
    tally("golden crd-openapi-v3: equal to Go", total)


def test_documents_of_own_definitions_are_built(tally: Callable[[str, int], None]) -> None:
    unequal, total = unequal_documents("1.34")
    tally("documents of own definitions equal to apiextensions 0.34.1", total - len(unequal))
    assert total > 250
    assert unequal == []
