"""Every real Swagger 2.0 document at hand: it converts, the result is valid, and no reference dangles.

openapi-spec-validator takes seconds for a megabyte. So a path or component is validated once, whichever
documents hold it: what was validated before is left out, or stands in as an empty schema.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator

from shared_data import DATA, files, read
from specmux_aggregator.built_in_releases import built_in_releases
from specmux_converters import ConverterError
from specmux_converters.from_swagger2.conversion import convert, convert_whole
from specmux_converters.from_swagger2.reading.source import Profile
from specmux_converters.group_versions import GroupVersion
from specmux_converters.recognise import DocumentKind, recognise
from specmux_converters.releases import RELEASES
from specmux_converters.to_swagger2.conversion import convert_to_v2

FOLDERS = [
    "aggregated-v2",
    "k8s-v2-aggregator-1.14",
    "k8s-v2-live",
    "k8s-v2-old",
    "k8s-pairs",
    "kube-openapi-vectors",
    "openapi-v2-protobuf",
    "openapi-spec-validator-fixtures/v2.0",
    "swagger2openapi-fixtures",
    "v2-other",
]

REFUSED = {
    "v2-other/connexion/tests/fixtures/invalid_schema/swagger.yaml": "/paths/~1foobar/post",
    "v2-other/connexion/tests/fixtures/simple/swagger.yaml.gz": "/paths/~1parameters-in-root-path/get/responses",  # noqa: E501
    "v2-other/gnostic/errors/petstore-badproperties.yaml": "/paths/~1pets/post/tags",
    "v2-other/gnostic/errors/petstore-missingversion.yaml": "",
}
"""Deliberately invalid, and where: no operation, a key twice, no array, no "swagger"."""

PROFILES: tuple[Profile, ...] = ("oas", "kubernetes")
LARGE = 200_000
"""Stored bytes."""

EMPTY_SCHEMA: dict[str, Any] = {}


class Validator(OpenAPIV30SpecValidator):
    @staticmethod
    def _deny(uri: str) -> Any:
        raise LookupError(uri)

    resolver_handlers = dict.fromkeys(("<all_urls>", "http", "https", "file", ""), _deny)


@pytest.fixture(scope="module")
def validated() -> set[bytes]:
    """Paths and components that were found valid, as canonical JSON."""
    return set()


def swaggers() -> Iterator[Any]:
    for folder in FOLDERS:
        for each in files(DATA / folder):
            path = each.values[0]
            if path is None or is_swagger(path):
                yield each


def is_swagger(path: Path) -> bool:
    if path.name in ("openapi.yaml", "PAIRS.json"):
        return False
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        start = file.read(100_000)
    # Kubernetes writes "swagger" last.
    return path.name.startswith("swagger.") or b"swagger" in start or start.startswith(b"\n\x032.0")


def cases() -> Iterator[Any]:
    """With all profiles at once, or one by one where each takes seconds."""
    for each in swaggers():
        path = each.values[0]
        if path is None or path.stat().st_size < LARGE:
            yield pytest.param(path, PROFILES, marks=each.marks, id=each.id)
        else:
            for profile in PROFILES:
                yield pytest.param(path, (profile,), marks=each.marks, id=f"{each.id}-{profile}")


@pytest.mark.long
@pytest.mark.parametrize(("path", "profiles"), list(cases()))
def test_document_converts_to_a_valid_one(
    path: Path, profiles: Sequence[Profile], validated: set[bytes], tally: Callable[[str, int], None]
) -> None:
    name = str(path.relative_to(DATA))
    try:
        found = recognise(read(path))
        if found.kind is not DocumentKind.SWAGGER_2:
            pytest.skip("not Swagger 2.0")
        convert_to_valid(found.documents[0], validated, tally, profiles)
    except ConverterError as error:
        assert REFUSED.get(name) == error.pointer
        tally("real documents refused: deliberately invalid", 1)
    else:
        assert name not in REFUSED


@pytest.mark.long
@pytest.mark.parametrize(
    "key", ["apis/apps/v1", "apis/autoscaling/v2", "apis/networking.k8s.io/v1", "apis/resource.k8s.io/v1"]
)
def test_swagger_of_a_built_in_document_converts_to_a_valid_one(
    key: str, validated: set[bytes], tally: Callable[[str, int], None]
) -> None:
    made = convert_to_v2(built_in_releases().document(RELEASES[-1], GroupVersion(key)))
    convert_to_valid(made.document, validated, tally)


def convert_to_valid(
    document: Any,
    validated: set[bytes],
    tally: Callable[[str, int], None],
    profiles: Sequence[Profile] = PROFILES,
) -> None:
    wholes = [convert_whole(document, profile=profile) for profile in profiles]
    for whole in wholes:
        lost = {loss.construct for loss in whole.losses}
        assert dangling(whole.document) == [] or "external $ref" in lost
        new = unseen(without_external(whole.document), validated)
        assert [f"{list(error.path)}: {error.message}"[:300] for error in Validator(new).iter_errors()] == []
        tally("real documents: losses reported", len(whole.losses))
    if profiles[-1] != PROFILES[-1]:
        return
    split = convert(document)
    for document in split.documents.values():
        assert dangling(document) == [] or "external $ref" in {loss.construct for loss in split.losses}
    tally("real documents converted: 0 errors, 0 dangling references", 1)
    tally("real documents: group-version documents", len(split.documents))


def refs(node: Any) -> Iterator[str]:
    """Every reference, wherever it stands, but in data. Looser than the converter's own walk."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for key, value in node.items():
            if not key.startswith("x-") and key not in ("example", "enum", "default"):
                yield from refs(value)
    elif isinstance(node, list):
        for item in node:
            yield from refs(item)


def dangling(document: Any) -> list[str]:
    found = []
    for ref in set(refs(document)):
        node = document if ref.startswith("#") else None
        for token in ref.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            node = node.get(key) if isinstance(node, dict) else None
        if node is None:
            found.append(ref)
    return sorted(found)


def without_external(node: Any) -> Any:
    """External references cannot be resolved: an empty schema in their place, nothing in a list."""
    if isinstance(node, dict):
        return (
            EMPTY_SCHEMA
            if is_external(node)
            else {key: without_external(value) for key, value in node.items()}
        )
    return (
        [without_external(item) for item in node if not is_external(item)] if isinstance(node, list) else node
    )


def is_external(node: Any) -> bool:
    ref = node.get("$ref") if isinstance(node, dict) else None
    return isinstance(ref, str) and not ref.startswith("#")


def unseen(document: Any, validated: set[bytes]) -> Any:
    """The document without the paths that were validated before, and with stand-ins for such schemas."""

    def is_new(node: Any) -> bool:
        text = orjson.dumps(node, option=orjson.OPT_SORT_KEYS)
        if text in validated:
            return False
        validated.add(text)
        return True

    result = {**document, "paths": {path: item for path, item in document["paths"].items() if is_new(item)}}
    schemas = document.get("components", {}).get("schemas", {})
    if schemas and b'"default":' not in orjson.dumps(document):  # whose validity depends on what it refers to
        kept = {name: node if is_new(node) else EMPTY_SCHEMA for name, node in schemas.items()}
        result["components"] = {**document["components"], "schemas": kept}
    return result
