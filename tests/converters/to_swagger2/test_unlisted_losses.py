"""Real documents on their way to Swagger 2.0 and back: what is missing then is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Any

import orjson
import pytest

import shared_data
from data.built_in_swagger import documents_of
from data.crd_manifests import manifests
from data.own_definitions import own_clusters
from data.round_trip import ancestors, missing
from shared_data import DATA, PAIRS, PUBLISHED, marks, read
from specmux_converters import convert_whole
from specmux_converters.crd import build
from specmux_converters.from_swagger2.reading.source import Profile
from specmux_converters.releases import RELEASES
from specmux_converters.to_swagger2.conversion import convert_to_v2


@pytest.mark.parametrize("profile", ["oas", "kubernetes"])
@pytest.mark.parametrize(
    "documents",
    [pytest.param("published", marks=[*marks(PUBLISHED, "data/crds"), pytest.mark.long]), "own"],
    indirect=True,
)
def test_what_does_not_come_back_is_reported(
    documents: Iterable[dict[str, Any]], profile: Profile, tally: Callable[[str, int], None]
) -> None:
    compared = 0
    silent = []
    for document in documents:
        made = convert_to_v2(document, profile=profile)
        again = convert_whole(made.document, profile=profile)
        reported = {loss.pointer for loss in made.losses}
        reported |= {loss.pointer.replace("/definitions", "/components/schemas", 1) for loss in again.losses}
        lost = missing(document, again.document)
        silent += [pointer for pointer in lost if reported.isdisjoint(ancestors(pointer))]
        compared += 1
    assert silent == []
    assert compared
    tally(f"real documents to v2 and back, {profile}: every loss reported", compared)


@pytest.fixture
def documents(request: pytest.FixtureRequest) -> Iterable[dict[str, Any]]:
    """Of a release and of definitions: with prose and of others, or built in and our own."""
    return published_documents() if request.param == "published" else own_documents()


def published_documents() -> Iterator[dict[str, Any]]:
    for path in shared_data.documents(PAIRS[-1]).values():
        yield orjson.loads(read(path))
    for folder in sorted((DATA / "crds").iterdir()):
        yield from build(manifests(folder)).documents.values()


@cache
def own_documents() -> tuple[dict[str, Any], ...]:
    built = (build(cluster["definitions"]).documents.values() for cluster in own_clusters())
    return (*documents_of(RELEASES[-1]).values(), *chain.from_iterable(built))
