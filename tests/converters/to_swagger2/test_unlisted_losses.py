"""Real documents on their way to Swagger 2.0 and back: what is missing then is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from data.crd_manifests import manifests
from data.round_trip import ancestors, missing
from shared_data import DATA, PAIRS, PUBLISHED, documents, needs, read
from specmux_converters import convert_whole
from specmux_converters.crd import build
from specmux_converters.from_swagger2.reading.source import Profile
from specmux_converters.to_swagger2.conversion import convert_to_v2


@needs(PUBLISHED, "data/crds")
@pytest.mark.parametrize("profile", ["oas", "kubernetes"])
def test_what_does_not_come_back_is_reported(profile: Profile, tally: Callable[[str, int], None]) -> None:
    compared = 0
    silent = []
    for document in real_documents():
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


def real_documents() -> Iterator[dict[str, Any]]:
    for path in documents(PAIRS[-1]).values():
        yield orjson.loads(read(path))
    for folder in sorted((DATA / "crds").iterdir()):
        yield from build(manifests(folder)).documents.values()
