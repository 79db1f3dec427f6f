"""v3 documents become the published v2: those of releases in both forms, and the built-in ones.

Not compared is what v3 does not say: ``schemes``, ``consumes`` of requests without a body, and the paths of
which there is no v3 document. Each is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import orjson
import pytest

from data.built_in_swagger import LISTED_SHORTER, as_said, digests, published_digests, swagger_of
from reference_data import GROUP_VERSION
from sampling import ends
from shared_data import DATA, IN_BOTH_OR_BUILT_IN, PAIRS, PUBLISHED, documents, load, needs
from specmux_converters.codecs import protobuf_v2
from specmux_converters.from_swagger2.paths.operations import METHODS
from specmux_converters.releases import RELEASES
from specmux_converters.to_swagger2.conversion import join_pieces, piece_of
from specmux_converters.to_swagger2.encoded import encode_piece, join_json


@pytest.mark.parametrize("release", ends(RELEASES))
def test_a_built_in_release_becomes_the_published_v2(release: str, tally: Callable[[str, int], None]) -> None:
    """But for its prose: by the digest of each definition and path."""
    published, made = published_digests()[release], digests(swagger_of(release))
    unlike = {key for key, digest in made.items() if published[key] != digest}
    unsaid = {f"/definitions/{name}" for name in LISTED_SHORTER} if release >= "1.36" else set()
    assert unlike == unsaid
    assert all("/definitions/" in key or not GROUP_VERSION.match(key[1:]) for key in published.keys() - made)
    assert len(made) > 1000
    tally("golden openapi-v2: objects of built-in releases equal to the published", len(made) - len(unlike))


@needs(PUBLISHED)
@pytest.mark.parametrize("release", ends(PAIRS))
def test_a_release_becomes_its_published_v2(release: str, tally: Callable[[str, int], None]) -> None:
    published = load(DATA / "k8s-pairs" / release / "v2" / "swagger.json.gz")
    made = join_pieces({key: piece_of(load(path)) for key, path in documents(release).items()})
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


@pytest.mark.parametrize("release", ends(IN_BOTH_OR_BUILT_IN))
def test_the_join_of_bytes_is_the_join_of_documents(release: str) -> None:
    parsed = {key: load(path) for key, path in documents(release).items()}
    whole = join_pieces({key: piece_of(document) for key, document in parsed.items()}).document
    text = join_json({key: encode_piece(document) for key, document in parsed.items()})
    assert text == orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)
    assert protobuf_v2.encode(orjson.loads(text))
