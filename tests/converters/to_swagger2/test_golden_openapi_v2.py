"""Releases that are there in both forms: their v3 documents become the published v2.

Not compared is what v3 does not say: ``schemes``, ``consumes`` of requests without a body, and the paths of
which there is no v3 document. Each is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from shared_data import DATA, PAIRS, PUBLISHED, documents, load, needs
from specmux_converters.codecs import protobuf_v2
from specmux_converters.from_swagger2.paths.operations import METHODS
from specmux_converters.to_swagger2.conversion import joined, piece_of
from specmux_converters.to_swagger2.encoded import encoded_piece, joined_json


def as_said(item: dict[str, Any], unsaid: Counter[str]) -> dict[str, Any]:
    """A published path item without what its v3 form does not say."""
    result = dict(item)
    for method in METHODS & item.keys():
        operation = dict(item[method])
        unsaid["schemes"] += operation.pop("schemes", None) is not None
        has_body = any(
            "body" in str(each.get("$ref", each.get("in"))) for each in operation.get("parameters", ())
        )
        if not has_body:
            unsaid["consumes"] += operation.pop("consumes", None) is not None
        result[method] = operation
    return result


@needs(PUBLISHED)
@pytest.mark.parametrize("release", PAIRS)
def test_a_release_becomes_its_published_v2(release: str, tally: Callable[[str, int], None]) -> None:
    published = load(DATA / "k8s-pairs" / release / "v2" / "swagger.json.gz")
    made = joined({key: piece_of(load(path)) for key, path in documents(release).items()})
    unsaid: Counter[str] = Counter()
    unlike = [
        n for n, schema in made.document["definitions"].items() if schema != published["definitions"][n]
    ]
    unlike += [
        path
        for path, item in made.document["paths"].items()
        if item != as_said(published["paths"][path], unsaid)
    ]
    unlike += [n for n, each in made.document["parameters"].items() if each != published["parameters"][n]]
    unlike += [k for k in ("swagger", "security", "securityDefinitions") if made.document[k] != published[k]]
    total = sum(len(made.document[key]) for key in ("definitions", "paths", "parameters")) + 3
    print(f"openapi-v2 {release}: {total - len(unlike)} of {total}")
    assert not unlike
    assert unsaid["schemes"] <= sum(len(METHODS & item.keys()) for item in published["paths"].values())
    counted = Counter(loss.construct for loss in made.losses)
    assert counted.keys() <= {"default", "oneOf", "discriminator", "not", "nullable"}
    tally("golden openapi-v2: objects equal to the published", total)
    tally("golden openapi-v2: what v3 does not say", unsaid.total())


@needs(PUBLISHED)
@pytest.mark.parametrize("release", PAIRS)
def test_the_join_of_bytes_is_the_join_of_documents(release: str) -> None:
    parsed = {key: load(path) for key, path in documents(release).items()}
    whole = joined({key: piece_of(document) for key, document in parsed.items()}).document
    text = joined_json({key: encoded_piece(document) for key, document in parsed.items()})
    assert text == orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)
    assert protobuf_v2.encode(orjson.loads(text))
