"""Against the Go judge: strict decoding and validation of an apiserver, recorded.

Where a schema may disagree the difference has a kind, and each is counted (docs/schemas.md says why):
* decoding of Go types knows no ``required``: a refusal for that alone agrees;
* what the recorded verdict lists.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jsonschema
import jsonschema_rs
import orjson
import pytest

from data import catalogue_documents as catalogue
from shared_data import GOLDEN, marks, needs
from specmux_converters.crd import build
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.catalogue import schema_of
from specmux_converters.json_schema.crds import crds_yaml
from specmux_converters.json_schema.definitions import dispatcher
from specmux_converters.json_schema.forms import STRICT, SchemaForm
from specmux_converters.json_schema.keywords import BY_COMPONENT, GO_BASE64, QUANTITY
from specmux_converters.json_schema.paths import documents_needed, file_wanted_at

FOLDER = GOLDEN / "json-schema"
PARTIAL = SchemaForm(is_partial=True)
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
SCALARS = {
    "quantity": QUANTITY,
    "bytes": {"type": "string", "pattern": GO_BASE64},
    "time": BY_COMPONENT[f"{META}.Time"],
    "microtime": BY_COMPONENT[f"{META}.MicroTime"],
}


def rows(name: str) -> Iterator[Any]:
    for path in sorted(FOLDER.glob(f"{name}*.jsonl*")):
        data = path.read_bytes()
        lines = gzip.decompress(data) if path.suffix == ".gz" else data
        yield from map(orjson.loads, lines.splitlines())


def place_of(case: Any) -> tuple[str, str]:
    key, kind = case["id"].split("|")[:2]
    return key.removeprefix("apis/").removeprefix("api/"), kind


def difference_of(case: Any, place: tuple[str, str], *, is_typed: bool) -> str | None:
    """The kind of disagreement; None where schema and judge agree."""
    value = case.get("object")
    faults = list(catalogue.validator(*place).iter_errors(value))
    if (not faults) == case["accept"]:
        return None
    if case.get("listed"):
        return f"listed: {case['listed']}"
    if case["accept"] and is_typed and catalogue.validator(*place, PARTIAL).is_valid(value):
        return "required in a Go type"
    if case["accept"] and not is_typed and all(_is_of_meta(fault) for fault in faults):
        return "required in metadata"
    return "unexplained"


def _is_of_meta(fault: Any) -> bool:
    path = list(fault.instance_path)
    return path[:1] == ["metadata"] and (path != ["metadata"] or "required" in fault.message)


def compare(name: str, tally: Callable[[str, int], None], *, is_typed: bool) -> None:
    differences: Counter[str] = Counter()
    wrong, count = [], 0
    for case in rows(name):
        count += 1
        difference = difference_of(case, place_of(case), is_typed=is_typed)
        if difference is not None:
            differences[difference] += 1
        if difference == "unexplained":
            wrong.append(case["id"])
    print(f"{name}: {count - len(wrong)} of {count}")
    assert count
    assert not wrong
    tally(f"golden {name}: as the judge", count - differences.total())
    for kind, number in sorted(differences.items()):
        tally(f"golden {name}: {kind}", number)


@pytest.mark.long
def test_objects_of_go_types(tally: Callable[[str, int], None]) -> None:
    compare("verdicts-typed", tally, is_typed=True)


@pytest.mark.long
@needs("data/crds")
def test_custom_resources(tally: Callable[[str, int], None]) -> None:
    compare("verdicts-cr", tally, is_typed=False)


@needs("data/crds", "data/manifests")
def test_manifests(tally: Callable[[str, int], None]) -> None:
    """``required`` and equal keys are where a parsed manifest and its schema may disagree with the judge."""
    differences: Counter[str] = Counter()
    wrong, count = [], 0
    for case in rows("manifests"):
        value = catalogue.manifest(case["document"])
        place = (value.get("apiVersion"), value.get("kind")) if value else ("", "")
        if place not in catalogue.kinds():
            differences["kinds that the release has no longer" if case["accept"] else "no known kind"] += 1
            continue
        count += 1
        difference = difference_of(case | {"object": value}, place, is_typed=case["mode"] == "typed")
        if difference == "unexplained" and "already set in map" in str(case.get("strict")):
            difference = "equal keys"
        if difference is not None:
            differences[difference] += 1
        wrong += [case["document"]] * (difference == "unexplained")
    print(f"manifests: {count - len(wrong)} of {count}")
    assert count
    assert not wrong
    for kind, number in sorted(differences.items()):
        tally(f"golden manifests: {kind}", number)


def scalar_difference(kind: str, text: str, *, accepts: bool) -> str | None:
    """Go takes hours of one digit and a comma before fractions, which no format of JSON Schema does."""
    if jsonschema_rs.Draft7Validator(SCALARS[kind], validate_formats=True).is_valid(text) == accepts:
        return None
    if kind.endswith("time") and accepts and ("," in text or "T3:" in text):
        return "one-digit hours, commas"
    return "unexplained"


def test_scalars(tally: Callable[[str, int], None]) -> None:
    cases = list(rows("scalars"))
    found = [scalar_difference(case["type"], case["text"], accepts=case["accept"]) for case in cases]
    wrong = [case["text"] for case, each in zip(cases, found, strict=True) if each == "unexplained"]
    print(f"scalars: {len(cases) - len(wrong)} of {len(cases)}")
    assert cases
    assert not wrong
    tally("golden scalars: as Go", found.count(None))
    tally("golden scalars: one-digit hours, commas", len(cases) - found.count(None))


@pytest.mark.long
@pytest.mark.parametrize("form", [STRICT, SchemaForm(is_strict=False), SchemaForm(is_named=True), PARTIAL])
def test_every_schema_is_one(form: SchemaForm, tally: Callable[[str, int], None]) -> None:
    """By the metaschema, and compiled: kubeconform takes a schema that does not compile for a missing one."""
    for owner, kind in catalogue.kinds().values():
        schema = owner.kind(kind, form)
        jsonschema_rs.Draft7Validator(schema, validate_formats=True)
        assert jsonschema_rs.meta.is_valid(schema)
    tally(f"schemas of kinds, {form.name}: valid by the metaschema", len(catalogue.kinds()))


def test_python_reads_them_too() -> None:
    for owner, kind in list(catalogue.kinds().values())[::50]:
        jsonschema.Draft7Validator.check_schema(owner.kind(kind, STRICT))


@needs("data/crds")
def test_paths_that_kubeconform_asks_for(tally: Callable[[str, int], None]) -> None:
    wrong, count = [], 0
    schemas: dict[Any, Any] = {}
    for case in rows("kubeconform-paths"):
        for path in (case[key] for key in case if "@" in key):
            count += 1
            file = file_wanted_at(path.removeprefix("/"))
            assert file is not None, path
            of_any = replace(file, release=None)  # a schema is that of every release
            if of_any not in schemas:
                held = {key: catalogue.schemas()[key] for key in documents_needed(file, catalogue.schemas())}
                schemas[of_any] = schema_of(file, held) or {}
            properties = schemas[of_any].get("properties", {})
            found = [properties.get(name, {}).get("enum") for name in ("apiVersion", "kind")]
            wrong += [path] * (found != [[case["apiVersion"]], [case["kind"]]])
    print(f"kubeconform-paths: {count - len(wrong)} of {count}")
    assert count
    assert not wrong
    tally("golden kubeconform-paths: the kind is there", count)


@pytest.mark.long
@pytest.mark.parametrize("name", ["verdicts-typed", pytest.param("verdicts-cr", marks=marks("data/crds"))])
def test_all_says_what_the_schema_of_the_kind_says(name: str, tally: Callable[[str, int], None]) -> None:
    whole = jsonschema_rs.Draft7Validator(dispatcher(catalogue.schemas(), STRICT), validate_formats=True)
    cases = [case for case in rows(name) if named(case) == place_of(case)]
    wrong = [
        case["id"]
        for case in cases
        if whole.is_valid(case["object"]) != catalogue.validator(*place_of(case)).is_valid(case["object"])
    ]
    assert cases
    assert not wrong
    tally(f"golden {name}: all.json as the kind's own", len(cases))


def named(case: Any) -> tuple[Any, Any]:
    return case["object"].get("apiVersion"), case["object"].get("kind")


@needs("data/crds")
def test_definitions_that_are_told_make_the_documents_again(tally: Callable[[str, int], None]) -> None:
    """``crds.yaml`` through our own builder: the same schemas of the same kinds."""
    manifests = [orjson.loads(each) for each in crds_yaml(catalogue.schemas()).split(b"---\n")[1:]]
    built = build(manifests)
    assert not built.problems
    compared = 0
    for owner, kind in catalogue.kinds().values():
        if owner.is_custom(kind.component):
            again = built.documents[GroupVersion(f"apis/{kind.api_version}")]
            assert again["components"]["schemas"][kind.component] == owner.schemas[kind.component], kind
            compared += 1
    assert compared
    tally("crds.yaml: kinds that are the same again", compared)
