"""Objects get the same verdict by the package's kinds and by the documents that an apiserver publishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import shared_data
from data.built_in_swagger import documents_of
from fakes.mutated_objects import mutants, skeletons
from shared_data import DATA, needs
from specmux_converters.group_versions import GroupVersion
from specmux_converters.release_documents import add_enums
from specmux_converters.releases import RELEASES as KNOWN
from specmux_tools.inputs.validated_objects import manifest_files, manifests_in
from specmux_tools.kinds import DocumentSet
from specmux_tools.sources.releases import ReleaseSource
from specmux_tools.validation import Validator

RELEASES = [each for each in shared_data.NATIVE if each in ("1.32", "1.35", "none")]
"""Those whose last patch has the documents of the first (test_release_documents.py)."""


@pytest.mark.parametrize(
    "release", [*(pytest.param(each, marks=pytest.mark.long) for each in RELEASES[:-1]), RELEASES[-1]]
)
@needs("data/k8s-serialized-objects", "data/manifests")
def test_verdicts_are_those_of_the_published_documents(
    release: str, tally: Callable[[str, int], None]
) -> None:
    paths = {GroupVersion(key): path for key, path in shared_data.documents(release).items()}
    own = ReleaseSource(release).load(paths.keys()).documents
    known = DocumentSet(
        {key: add_enums(shared_data.load(path), own.documents[key]) for key, path in paths.items()}
    )
    judges = [Validator(documents, release=release) for documents in (known, own)]
    tally(f"objects judged alike by the kinds of {release} and its documents", _judged_alike(judges, known))


@pytest.mark.parametrize("release", [pytest.param("1.30", marks=pytest.mark.long), KNOWN[-1]])
def test_verdicts_do_not_depend_on_prose(release: str, tally: Callable[[str, int], None]) -> None:
    """All that published documents have more (test_release_documents.py)."""
    own = documents_of(release)
    known = DocumentSet({key: _with_prose(document) for key, document in own.items()})
    judges = [Validator(documents, release=release) for documents in (known, DocumentSet(own))]
    tally(
        f"objects judged alike by the kinds of {release}, with prose and without",
        _judged_alike(judges, known),
    )


def _judged_alike(judges: list[Validator], known: DocumentSet) -> int:
    judged = valid = 0
    made = ((each, "application/json") for each in mutants((*skeletons(known), *_filled())))
    for data, media_type in (*_files(), *made):
        verdicts = [
            [(each.as_document(), each.fatal) for each in judge.validate_all(data, media_type)]
            for judge in judges
        ]
        assert verdicts[0] == verdicts[1], data
        judged += len(verdicts[0])
        valid += sum(not fatal and not each["violations"] for each, fatal in verdicts[0])
    assert judged >= 2000
    assert 100 < valid < judged - 1000  # both verdicts are there
    return judged


def _with_prose(value: Any) -> Any:
    """Descriptions at every schema that has a type."""
    if isinstance(value, list):
        return [_with_prose(each) for each in value]
    if not isinstance(value, dict):
        return value
    told = {"description": "It is what it is."} if isinstance(value.get("type"), str) else {}
    return {**told, **{key: _with_prose(each) for key, each in value.items()}}


def _files() -> Iterator[tuple[bytes, str]]:
    folders = (DATA / "manifests", DATA / "defects/mistakes")
    for folder in filter(Path.is_dir, folders):
        for item in manifests_in(manifest_files([str(folder)])):
            yield item.part.data, f"application/{item.part.format}"


def _filled() -> Iterator[Any]:
    for path in sorted((DATA / "k8s-serialized-objects").rglob("*.json")):
        if path.name != "INDEX.json":
            yield orjson.loads(path.read_bytes())
