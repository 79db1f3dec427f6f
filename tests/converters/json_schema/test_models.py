"""Bundles for generators of models: names, references, and what each construct becomes in either dialect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs
import orjson
import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator

from shared_data import GOLDEN, documents, load, read
from specmux_converters.document import CRD_TITLE
from specmux_converters.errors import LimitExceeded
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.forms import MODEL_FORMS, ModelForm
from specmux_converters.json_schema.kinds import kinds_in
from specmux_converters.json_schema.models import models

KEY = GroupVersion("apis/garden.example.org/v1")
DRAFT_07, OPENAPI = ModelForm("json-schema"), ModelForm("openapi")
BED = "org.example.garden.v1.Bed"


def custom(**properties: Any) -> Any:
    """A document of one custom resource."""
    gvk = [{"group": "garden.example.org", "version": "v1", "kind": "Bed"}]
    bed = {"type": "object", "x-kubernetes-group-version-kind": gvk, "properties": properties}
    return {"openapi": "3.0.0", "info": {"title": CRD_TITLE}, "components": {"schemas": {BED: bed}}}


def definitions_of(dialect: Any, **properties: Any) -> Any:
    bundle = models(custom(**properties), KEY, ModelForm(dialect))
    assert bundle is not None
    return bundle["definitions"] if dialect == "json-schema" else bundle["components"]["schemas"]


def field(node: Any, dialect: Any = "json-schema") -> Any:
    return definitions_of(dialect, a=node)["Bed"]["properties"]["a"]


INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


@pytest.mark.parametrize(
    ("node", "draft", "openapi"),
    [
        (
            {"type": "string", "nullable": True},
            {"type": ["string", "null"]},
            {"type": "string", "nullable": True},
        ),
        ({"type": "string", "default": "a"}, {"type": "string", "default": "a"}, None),
        ({"type": "object", "default": {}}, {"type": "object", "additionalProperties": True}, None),
        ({"x-kubernetes-int-or-string": True, "pattern": "a"}, {"anyOf": INT_OR_STRING}, None),
        ({"x-kubernetes-int-or-string": True, "anyOf": INT_OR_STRING}, {"anyOf": INT_OR_STRING}, None),
        ({"x-kubernetes-preserve-unknown-fields": True}, {}, None),
        ({"type": "string", "oneOf": [{"pattern": "a"}, {"pattern": "b"}]}, {"type": "string"}, None),
        (
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            {"type": "integer", "exclusiveMinimum": 1},
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        ),
        ({"type": "string", "enum": ["", "a"]}, {"type": "string", "enum": ["", "a"]}, None),
    ],
)
def test_a_field_is_its_type(node: Any, draft: Any, openapi: Any) -> None:
    assert field(node) == draft
    assert field(node, "openapi") == (draft if openapi is None else openapi)


def test_a_partial_bundle_says_what_decoding_asks() -> None:
    node = {"type": "object", "properties": {"x": {"type": "string", "enum": ["a"]}}, "required": ["x"]}
    whole = custom(a=node)
    for title, values in ((CRD_TITLE, {"enum": ["a"]}), ("Kubernetes", {})):
        bundle = models(whole | {"info": {"title": title}}, KEY, ModelForm("json-schema", is_partial=True))
        assert bundle is not None
        found = bundle["definitions"]
        assert found["BedA"] == {"type": "object", "properties": {"x": {"type": "string", **values}}}
        assert found["Bed"]["properties"]["kind"] == {"type": "string"}


def test_base64_is_text_of_a_pattern_in_draft_07() -> None:
    node = {"type": "string", "format": "byte"}
    assert field(node, "openapi") == node
    written = field(node)
    assert written.keys() == {"type", "pattern"}
    fits = jsonschema_rs.Draft7Validator(written).is_valid
    assert (fits("AAE="), fits("AAE"), fits("_w==")) == (True, False, False)


def test_objects_have_names_of_their_paths() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "string"}}}
    found = definitions_of(
        "json-schema",
        spec={
            "type": "object",
            "properties": {"soil-types": {"type": "array", "items": inner}},
            "required": ["soil-types"],
        },
        specSoilTypes={**inner, "nullable": True},
        free={"type": "object", "additionalProperties": inner},
    )
    assert found.keys() == {"Bed", "BedSpec", "BedSpecSoilTypes", "BedSpecSoilTypes2", "BedFree"}
    assert found["BedSpec"]["properties"]["soil-types"]["items"] == {"$ref": "#/definitions/BedSpecSoilTypes"}
    assert found["BedSpec"]["required"] == ["soil-types"]
    nullable = found["Bed"]["properties"]["specSoilTypes"]
    assert nullable == {"anyOf": [{"$ref": "#/definitions/BedSpecSoilTypes2"}, {"type": "null"}]}
    assert found["Bed"]["properties"]["kind"]["enum"] == ["Bed"]
    assert definitions_of("openapi", a={**inner, "nullable": True})["Bed"]["properties"]["a"] == {
        "allOf": [{"$ref": "#/components/schemas/BedA"}],
        "nullable": True,
    }


def test_no_kinds_are_no_bundle_and_depth_is_refused() -> None:
    assert models(custom(), GroupVersion("apis/other/v1"), OPENAPI) is None
    assert models(custom(), KEY, OPENAPI, lambda kind: kind.kind != "Bed") is None
    deep: Any = {"type": "string"}
    for _ in range(3000):
        deep = {"type": "array", "items": deep}
    with pytest.raises(LimitExceeded):
        models(custom(a=deep), KEY, OPENAPI)


def refs(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from refs(value)
    elif isinstance(node, list):
        for value in node:
            yield from refs(value)


def test_every_kind_of_a_release_is_there_and_every_reference_leads_somewhere() -> None:
    count = 0
    for key, path in documents("1.35").items():
        document = load(path)
        kinds = {kind.kind for kind in kinds_in(document, GroupVersion(key))}
        for form in MODEL_FORMS:
            bundle = models(document, GroupVersion(key), form)
            if bundle is None:
                assert not kinds
                continue
            named = (
                bundle["definitions"] if form.dialect == "json-schema" else bundle["components"]["schemas"]
            )
            assert kinds <= named.keys()
            assert {ref.rpartition("/")[2] for ref in refs(bundle)} <= named.keys()
            assert all(re.fullmatch("[A-Z][A-Za-z0-9]*", name) for name in named)
            count += len(kinds)
        if bundle is not None and len(orjson.dumps(bundle)) < 40_000:
            OpenAPIV30SpecValidator(bundle).validate()
    assert count == len(MODEL_FORMS) * 175
    assert "MicroTime" not in str(
        models(
            load(documents("1.35")["apis/events.k8s.io/v1"]),
            GroupVersion("apis/events.k8s.io/v1"),
            DRAFT_07,
        )
    )


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value if each is not None] if isinstance(value, list) else value


@pytest.mark.parametrize("form", [DRAFT_07, ModelForm("json-schema", is_partial=True)], ids=str)
def test_recorded_objects_fit_their_models(tally: Callable[[str, int], None], form: ModelForm) -> None:
    """Those that Kubernetes takes; all of them if partial, since decoding asks for no required fields."""
    validators: dict[tuple[str, str], Any] = {}
    found = {GroupVersion(key): load(path) for key, path in documents("1.35").items()}
    fitting = 0
    unfit = []
    for line in read(GOLDEN / "json-schema" / "verdicts-typed.jsonl.gz").splitlines():
        recorded = orjson.loads(line)
        if not recorded["accept"]:
            continue
        key, kind, *_ = recorded["id"].split("|")
        if (key, kind) not in validators:
            bundle = models(found[key], key, form, lambda each: each.kind == kind)  # noqa: B023
            validators[key, kind] = jsonschema_rs.Draft7Validator(bundle)
        errors = list(validators[key, kind].iter_errors(without_nulls(recorded["object"])))
        if not errors:
            fitting += 1
        elif not all(_is_expected(each) for error in errors for each in error.kind.context[0]):
            unfit.append(recorded["id"])
    tally(f"recorded objects that fit their {'partial ' * form.is_partial}models", fitting)
    assert fitting == (923 if form.is_partial else 780)
    assert unfit == []


def _is_expected(error: Any) -> bool:
    return error.schema_path[-1] in ("required", "enum")
