"""What Kubernetes publishes in both forms: converting its v2 document must give its v3 documents.

The comparison ignores what ``docs/conversion.md`` names and nothing else: values of ``default`` (v2 is
published without them), the ``allOf`` that only a default causes, the order of parameters, and the missing
``requestBody.required`` of releases before 1.29. Each is counted.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from data.built_in_swagger import LISTED_SHORTER, documents_of, swagger_of
from sampling import ends
from shared_data import (
    DATA,
    IN_BOTH_OR_BUILT_IN,
    NATIVE,
    PAIRS,
    PUBLISHED,
    documents,
    files,
    load,
    marks,
    needs,
    read,
)
from specmux_converters import Conversion, convert, parse
from specmux_converters.from_swagger2.reading.source import Profile
from specmux_converters.losses import Grade
from specmux_converters.releases import RELEASES

NEWEST = PAIRS[-1]


def differences(ours: Any, theirs: Any, kind: str, excepted: Counter[str], path: str = "") -> Iterator[str]:
    """Where two trees differ. ``kind`` is what stands there: a "schema", a map of them, "data" or "other"."""
    if kind == "schema":
        ours, theirs = without_default(ours, excepted), without_default(theirs, excepted)
    if kind == "parameters":
        ours, theirs = in_order(ours, theirs, excepted)
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            if key not in ours or key not in theirs:
                yield f"{path}/{key}: {'only theirs' if key in theirs else 'only ours'}"
            else:
                yield from differences(
                    ours[key], theirs[key], kind_below(kind, key), excepted, f"{path}/{key}"
                )
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        below = {"schemas": "schema", "data": "data"}.get(kind, "other")
        for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(a, b, below, excepted, f"{path}/{index}")
    elif ours != theirs or type(ours) is not type(theirs):
        yield f"{path}: {str(ours)[:60]} is not {str(theirs)[:60]}"


def kind_below(kind: str, key: str) -> str:
    if kind == "schemas":
        return "schema"
    if kind == "data" or key.startswith("x-"):
        return "data"
    if kind == "schema":
        named = {"properties": "schemas", "allOf": "schemas", "anyOf": "schemas", "oneOf": "schemas"}
        named |= {"items": "schema", "additionalProperties": "schema", "not": "schema"}
        return named.get(key, "data")
    return {"schemas": "schemas", "schema": "schema", "parameters": "parameters"}.get(key, "other")


def without_default(schema: Any, excepted: Counter[str]) -> Any:
    """The schema as it would be without its default, whose ``allOf`` wrap is then a bare ``$ref``."""
    if not isinstance(schema, dict):
        return schema
    if "default" in schema:
        excepted["defaults"] += 1
        schema = {key: value for key, value in schema.items() if key != "default"}
    wrapped = schema.get("allOf")
    if schema.keys() == {"allOf"} and len(wrapped) == 1 and wrapped[0].keys() == {"$ref"}:
        excepted["allOf around a lone $ref"] += 1
        return wrapped[0]
    return schema


def in_order(ours: Any, theirs: Any, excepted: Counter[str]) -> tuple[Any, Any]:
    def place(parameter: dict[str, Any]) -> tuple[str, str]:
        return parameter["in"], parameter["name"]

    if [place(each) for each in ours] != [place(each) for each in theirs]:
        excepted["parameters in another order"] += 1
    return sorted(ours, key=place), sorted(theirs, key=place)


def converted(release: str) -> Conversion:
    return convert(parse(read(DATA / "k8s-pairs" / release / "v2" / "swagger.json.gz")))


@needs(PUBLISHED)
@pytest.mark.parametrize("release", ends(PAIRS))
def test_conversion_equals_what_kubernetes_published(release: str, tally: Callable[[str, int], None]) -> None:
    conversion = converted(release)
    published = documents(release)
    excepted: Counter[str] = Counter()
    unequal = []
    for key, path in published.items():
        unequal += [
            f"{key}: {each}" for each in differences(conversion.documents[key], load(path), "other", excepted)
        ]
    assert not unequal, "\n".join(unequal[:20])
    tally(f"oracle: documents of {release} equal to the published ones", len(published))
    for name, count in excepted.items():
        tally(f"oracle: excepted, {name}", count)


@pytest.mark.parametrize("release", ends(RELEASES))
def test_conversion_equals_the_built_in_documents(release: str, tally: Callable[[str, int], None]) -> None:
    """Of the Swagger 2.0 that test_golden_openapi_v2.py shows to be the published one."""
    conversion = convert(swagger_of(release))
    built_in = documents_of(release)
    excepted: Counter[str] = Counter()
    unequal = [
        f"{key}: {each}"
        for key, document in built_in.items()
        for each in differences(conversion.documents[key], document, "other", excepted)
        if not any(f"/{name}/x-kubernetes-group-version-kind:" in each for name in LISTED_SHORTER)
    ]
    assert not unequal, "\n".join(unequal[:20])
    tally("oracle: documents of built-in releases equal to the published ones", len(built_in))
    for name, count in excepted.items():
        tally(f"oracle: excepted, {name}", count)


@needs(PUBLISHED)
def test_every_document_has_a_key(tally: Callable[[str, int], None]) -> None:
    keys = set(converted(NEWEST).documents)
    assert keys > set(documents(NEWEST))
    assert {key for key in keys - set(documents(NEWEST)) if not key.startswith(("api/", "apis/"))} == {
        "api", "apis", "version", "logs", "openid/v1/jwks", ".well-known/openid-configuration",
    }  # fmt: skip
    tally(f"oracle: documents made from {NEWEST}", len(keys))


@needs(PUBLISHED, "data/k8s-v3-nongv")
@pytest.mark.parametrize("name", ["version", "logs"])
def test_documents_beside_group_versions_equal_what_kubernetes_published(name: str) -> None:
    path = DATA / "k8s-v3-nongv" / f"{name}_openapi.json"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the set")
    published = load(path)
    assert list(differences(converted(NEWEST).documents[name], published, "other", Counter())) == []


def _lose(path: str) -> Callable[[Any], None]:
    *parents, last = path.split("|")

    def apply(document: Any) -> None:
        for token in parents:
            document = document[int(token) if isinstance(document, list) else token]
        del document[int(last) if isinstance(document, list) else last]

    return apply


POD = "paths|/api/v1/namespaces/{namespace}/pods/{name}|"


@pytest.mark.parametrize(
    "path",
    [
        "components|schemas|io.k8s.api.core.v1.Pod",
        "components|schemas|io.k8s.api.core.v1.Pod|x-kubernetes-group-version-kind",
        "components|schemas|io.k8s.api.core.v1.Pod|properties|spec|allOf",
        pytest.param(
            "components|schemas|io.k8s.api.core.v1.Pod|properties|spec|description", marks=marks(PUBLISHED)
        ),
        "components|schemas|io.k8s.api.core.v1.LimitRangeItem|properties|default",
        "components|schemas|io.k8s.apimachinery.pkg.util.intstr.IntOrString|oneOf",
        "components|schemas|io.k8s.apimachinery.pkg.api.resource.Quantity|oneOf|0",
        "components|securitySchemes|BearerToken",
        f"{POD}get|x-kubernetes-action",
        f"{POD}parameters|0",
        f"{POD}put|parameters|0|schema|uniqueItems",
        f"{POD}put|requestBody|required",
        f"{POD}get|responses|401",
        f"{POD}get|responses|200|content|application/yaml",
    ],
)
def test_comparison_notices_a_lost_field(path: str) -> None:
    """Otherwise the oracle above would prove nothing."""
    published = documents(NATIVE[-1])
    ours = load(published["api/v1"])
    damaged = copy.deepcopy(ours)
    _lose(path)(damaged)
    assert list(differences(ours, ours, "other", Counter())) == []
    assert list(differences(damaged, ours, "other", Counter()))


@pytest.mark.parametrize("profile", ["kubernetes", "oas"])
@pytest.mark.parametrize(
    "of", files(DATA, "k8s-*/**/*swagger*.json*") if PAIRS != ("none",) else IN_BOTH_OR_BUILT_IN
)
def test_nothing_of_a_release_is_lost(
    of: Path | str, profile: Profile, tally: Callable[[str, int], None]
) -> None:
    """What is reported of it are notes: ``--strict`` converts every release. ``of``: a file or a built-in
    release."""
    swagger = swagger_of(of) if isinstance(of, str) else parse(read(of))
    losses = convert(swagger, profile=profile).losses
    assert [loss for loss in losses if loss.grade is Grade.LOSS] == []
    tally("oracle: documents of releases without a loss", 1)
