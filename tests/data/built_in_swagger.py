"""The Swagger 2.0 of built-in releases, which has no prose, and the digests of what Kubernetes published.

``published_swagger.json.xz`` has them of every definition and path, without prose and without what v3 does
not say. ``python tests/data/built_in_swagger.py`` writes it from the modules that the built-in releases name.
"""

from __future__ import annotations

import functools
import hashlib
import io
import lzma
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

sys.path.append(str(Path(__file__).resolve().parents[1]))

from reference_data import GROUP_VERSION, downloaded, hash_of
from specmux_aggregator.built_in_releases import built_in_releases
from specmux_converters.document import Document
from specmux_converters.from_swagger2.paths.operations import METHODS
from specmux_converters.group_versions import GroupVersion
from specmux_converters.release_documents import facts_of
from specmux_converters.releases import RELEASES
from specmux_converters.to_swagger2.conversion import join_pieces, piece_of

RECORDED = Path(__file__).with_name("published_swagger.json.xz")
LISTED_SHORTER = (
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
)
"""Whose group-version-kinds v3 lists by document from 1.36 on, and v2 all."""
_DIGITS = 10
_PARAMETERS = "#/parameters/"


def without_enums(value: Any) -> Any:
    """As Kubernetes publishes documents, and no server of it writes them."""
    if isinstance(value, list):
        return [without_enums(each) for each in value]
    if isinstance(value, dict):
        members = {key: without_enums(each) for key, each in value.items()}
        return {key: each for key, each in members.items() if key != "enum" or not isinstance(each, list)}
    return value


def documents_of(release: str) -> dict[GroupVersion, Document]:
    """Those of group-versions, as Kubernetes publishes them."""
    known = built_in_releases()
    keys = (key for key in known.group_versions(release) if GROUP_VERSION.fullmatch(key))
    return {key: without_enums(known.document(release, key)) for key in keys}


@functools.lru_cache(1)
def swagger_of(release: str) -> Document:
    return join_pieces({key: piece_of(document) for key, document in documents_of(release).items()}).document


@functools.cache
def published_digests() -> dict[str, dict[str, str]]:
    """By release and "/definitions/NAME" or path."""
    found: dict[str, dict[str, str]] = orjson.loads(lzma.decompress(RECORDED.read_bytes()))
    return found


def digests(swagger: Document) -> dict[str, str]:
    """Parameters stand where they are used: their names are of hashes of their prose."""
    facts = facts_of(swagger)
    pieces = {f"/definitions/{name}": schema for name, schema in facts["definitions"].items()}
    pieces |= {
        path: as_said(_with_parameters(item, facts["parameters"]), Counter())
        for path, item in facts["paths"].items()
    }
    return {
        key: hashlib.sha256(orjson.dumps(piece, option=orjson.OPT_SORT_KEYS)).hexdigest()[:_DIGITS]
        for key, piece in pieces.items()
    }


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


def _with_parameters(value: Any, parameters: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_with_parameters(each, parameters) for each in value]
    if not isinstance(value, dict):
        return value
    name = str(value.get("$ref", ""))
    if name.startswith(_PARAMETERS):
        return parameters[name.removeprefix(_PARAMETERS)]
    return {key: _with_parameters(each, parameters) for key, each in value.items()}


def main(releases: Iterable[str] = RELEASES) -> None:
    recorded = {}
    for release in releases:
        name, hash = built_in_releases().source_of(release)
        with zipfile.ZipFile(io.BytesIO(downloaded(*name.split("@")))) as archive:
            assert hash_of(archive) == hash, name
            swagger = orjson.loads(archive.read(f"{name}/api/openapi-spec/swagger.json"))
        recorded[release] = digests(swagger)
    data = lzma.compress(orjson.dumps(recorded, option=orjson.OPT_SORT_KEYS), preset=9)
    RECORDED.write_bytes(data)
    print(f"{RECORDED.name}: {len(data)} bytes")


if __name__ == "__main__":
    main()
