"""Documents of manifests: equal to upstream's, alive beside bad ones, rebuilt where something changed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV30SpecValidator

from converters.crd.widgets import COMPONENT, KEY, of_spec, widget
from data.crd_manifests import manifests
from data.own_definitions import own_clusters
from sampling import examples
from shared_data import DATA
from specmux_converters import codecs, media_types
from specmux_converters.crd import CRDMemo, build
from specmux_converters.document import Document, Limits, canonical
from specmux_converters.errors import ConverterError, LimitExceeded
from specmux_converters.group_versions import GroupVersion
from specmux_converters.recognise import recognise

V1 = GroupVersion(KEY)


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from references(child)
    elif isinstance(node, list):
        for child in node:
            yield from references(child)


class Validator(OpenAPIV30SpecValidator):
    @staticmethod
    def _deny(uri: str) -> Any:
        raise LookupError(uri)

    resolver_handlers = dict.fromkeys(("<all_urls>", "http", "https", "file", ""), _deny)


def assert_valid(document: Document) -> None:
    """But for ``default: {}``, which upstream writes beside references to schemas with required fields."""
    document = copy.deepcopy(document)
    schemas = document["components"]["schemas"]
    if "io.k8s.api.autoscaling.v1.Scale" in schemas:
        del schemas["io.k8s.api.autoscaling.v1.Scale"]["properties"]["status"]["default"]
    assert [str(error) for error in Validator(document).iter_errors()] == []


@pytest.mark.long
def test_real_documents_are_whole_and_encode(tally: Callable[[str, int], None]) -> None:
    """Of the projects' definitions, else of our own."""
    others = [manifests(DATA / "crds")] if (DATA / "crds").is_dir() else []
    for built in map(build, others or [cluster["definitions"] for cluster in own_clusters()]):
        assert built.documents
        for key, document in built.documents.items():
            schemas = document["components"]["schemas"]
            assert {each.rpartition("/")[2] for each in references(document)} <= schemas.keys()
            assert built.json(key) == canonical(document)
            assert codecs.encode(document, media_types.PROTOBUF)
        tally("CRD documents without a dangling reference, encoded", len(built.documents))


def test_small_document_is_valid_and_complete() -> None:
    built = build([widget(subresources={"status": {}}, selectableFields=[{"jsonPath": ".spec.a"}])])
    assert (list(built.documents), built.problems) == ([V1], ())
    document = built.documents[V1]
    schemas = document["components"]["schemas"]
    kind = {"group": "example.com", "version": "v1", "kind": "Widget"}
    assert schemas[COMPONENT]["x-kubernetes-group-version-kind"] == [kind]
    assert schemas[COMPONENT + "List"]["x-kubernetes-group-version-kind"] == [{**kind, "kind": "WidgetList"}]
    assert schemas[COMPONENT + "List"]["description"] == "WidgetList is a list of Widget"
    for name in (COMPONENT, COMPONENT + "List"):
        assert schemas[name]["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.a"}]
    assert "io.k8s.api.autoscaling.v1.Scale" not in schemas
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in schemas
    assert_valid(document)


def test_scale_brings_its_schemas() -> None:
    document = build([widget(subresources={"scale": {}})]).documents[V1]
    assert "io.k8s.api.autoscaling.v1.ScaleStatus" in document["components"]["schemas"]
    assert_valid(document)


@pytest.mark.parametrize("schema", [None, {"type": "string"}, {"type": "object", "$ref": "x"}, [], "x"])
def test_schema_that_cannot_be_published_is_any_object(schema: Any) -> None:
    bad, good = widget({"type": "object"}), widget(kind="Gadget", plural="gadgets")
    bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    built = build([bad, good])
    schemas = built.documents[V1]["components"]["schemas"]
    assert schemas[COMPONENT].keys() == {"type", "x-kubernetes-group-version-kind"}
    assert schemas["com.example.v1.Gadget"]["properties"].keys() >= {"spec", "metadata"}
    assert "/apis/example.com/v1/widgets" in built.documents[V1]["paths"]
    (problem,) = built.problems
    assert (problem.crd, problem.construct) == ("widgets.example.com", "schema")
    assert problem.pointer.startswith("/spec/versions/0/schema/openAPIV3Schema")


@pytest.mark.parametrize("names", [{"kind": "Widget"}, {"listKind": "WidgetList"}, {"kind": "WidgetList"}])
def test_crd_whose_names_are_taken_stays_out(names: dict[str, str]) -> None:
    other = widget(kind="Gadget", plural="gadgets")
    other["spec"]["names"] |= names
    third = widget(kind="Third", plural="thirds")
    built = build([widget(), other, third])
    assert [(each.crd, each.construct) for each in built.problems] == [("gadgets.example.com", "version")]
    assert "widgets.example.com" in built.problems[0].reason
    assert built.documents == build([widget(), third]).documents


def test_names_of_kubernetes_itself_are_taken() -> None:
    manifest = widget(kind="ObjectMeta", plural="objectmetas")
    manifest["spec"]["group"] = "meta.apis.pkg.apimachinery.k8s.io"
    built = build([manifest])
    assert (dict(built.documents), len(built.problems)) == ({}, 1)


def test_later_manifest_of_a_crd_replaces_the_earlier() -> None:
    later = widget(of_spec({"type": "string"}))
    built = build([widget(), later])
    assert built.documents == build([later]).documents
    assert [each.crd for each in built.problems] == ["widgets.example.com"]
    assert build([widget(), widget()]).problems == ()


def test_version_that_is_no_longer_served_goes() -> None:
    memo = CRDMemo()
    manifest = widget()
    assert list(build([manifest], memo=memo).documents) == [V1]
    manifest = copy.deepcopy(manifest)
    manifest["spec"]["versions"][0]["served"] = False
    built = build([manifest], memo=memo)
    assert (dict(built.documents), built.problems, len(memo)) == ({}, (), 0)


def test_status_is_ignored() -> None:
    assert build([{**widget(), "status": {"conditions": [], "acceptedNames": {"kind": ""}}}]).documents


def test_only_owned_group_versions_are_looked_at() -> None:
    other = widget({"type": "string"})
    other["spec"]["group"] = "example.org"
    built = build([widget(), other], owns=lambda key: key == V1)
    assert (list(built.documents), built.problems) == ([V1], ())


def test_memo_keeps_what_did_not_change() -> None:
    memo = CRDMemo()
    first = [widget(), widget(kind="Gadget", plural="gadgets")]
    before = build(first, memo=memo)
    again = build(copy.deepcopy(first), memo=memo)
    path = "/apis/example.com/v1/widgets"
    assert again.outlines[V1].paths[path] is before.outlines[V1].paths[path]
    assert again.fingerprints == before.fingerprints
    changed = build(
        [first[0], widget(of_spec({"type": "string"}), kind="Gadget", plural="gadgets")], memo=memo
    )
    assert changed.fingerprints[V1] != before.fingerprints[V1]
    assert changed.outlines[V1].paths[path] is before.outlines[V1].paths[path]
    assert (
        changed.documents
        == build([first[0], widget(of_spec({"type": "string"}), kind="Gadget", plural="gadgets")]).documents
    )
    build([first[0]], memo=memo)
    assert len(memo) == 1


def test_memo_tells_one_from_true() -> None:
    memo = CRDMemo()
    for default in (1, True, 1.5):
        built = build([widget(of_spec({"type": "object", "default": default}))], memo=memo)
        spec = built.documents[V1]["components"]["schemas"][COMPONENT]["properties"]["spec"]
        assert (spec["default"], type(spec["default"])) == (default, type(default))


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 1e20, -1e20, 1e308])
def test_number_of_any_size_is_published(number: float) -> None:
    spec = {"type": "number", "maximum": number, "default": number, "enum": [number]}
    built = build([widget(of_spec(spec))])
    assert built.problems == ()
    published = built.documents[V1]["components"]["schemas"][COMPONENT]["properties"]["spec"]
    assert float(published["maximum"]) == float(published["default"]) == float(number)


def test_input_is_not_written_into() -> None:
    nested = {"minimum": 1, "required": [None], "enum": [1.0, {"a": [2.0]}]}
    manifest = widget(of_spec({"x-kubernetes-int-or-string": True, "allOf": [nested], "default": {"a": 1.0}}))
    before = copy.deepcopy(manifest)
    build([manifest])
    assert manifest == before


def test_documents_beyond_the_limit_are_left_out() -> None:
    many = [widget(kind=f"Kind{each}", plural=f"plural{each}") for each in range(20)]
    size = len(build(many[:5]).json(V1))
    built = build(many, limits=Limits(max_expanded_bytes=size))
    assert 0 < len(built.documents[V1]["paths"]) < 60
    assert {each.construct for each in built.problems} == {"version"}


@pytest.mark.parametrize("levels", [200, 5_000])
def test_schema_that_is_nested_too_deeply_is_a_problem(levels: int) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    built = build([widget(schema), widget(kind="Gadget", plural="gadgets")])
    assert "com.example.v1.Gadget" in built.documents[V1]["components"]["schemas"]
    assert [each.crd for each in built.problems] == ["widgets.example.com"]


def test_schema_that_no_apiserver_takes_is_a_problem() -> None:
    built = build([widget(of_spec({"type": "string", "description": "d" * (5 * 1024 * 1024)}))])
    assert (dict(built.documents), [each.construct for each in built.problems]) == ({}, ["version"])


@pytest.mark.parametrize("value", ["\ud800", 2**64, object(), {1: 2}])
def test_what_is_not_json_is_a_problem(value: Any) -> None:
    fields = widget(selectableFields=[{"jsonPath": "\ud800"}])
    default = widget(of_spec({"type": "object", "default": value}), kind="Gadget", plural="gadgets")
    built = build([fields, default])
    assert (dict(built.documents), [each.construct for each in built.problems]) == ({}, ["version"] * 2)


def test_thousand_versions() -> None:
    manifest = widget()
    entry = manifest["spec"]["versions"][0]
    manifest["spec"]["versions"] = [{**entry, "name": f"v{number}"} for number in range(1, 1001)]
    built = build([manifest])
    assert (len(built.documents), built.problems) == (1000, ())


YAML = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Cluster
  versions:
  - name: v1
    served: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              y: &text {type: string, enum: [=, "!=", on, 1:30, 2020-01-01]}
              n: *text
              on: *text
"""


def test_yaml_is_read_as_kubectl_reads_it() -> None:
    built = build(recognise(YAML.encode()).documents)
    spec = built.documents[V1]["components"]["schemas"][COMPONENT]["properties"]["spec"]
    assert spec["properties"].keys() == {"true", "false"}
    assert spec["properties"]["false"]["enum"] == ["=", "!=", True, "1:30", "2020-01-01"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("group: example.com", "group: {{ .Values.group }}"),
        ("n: *text", "n: &a [*text, *a]"),
    ],
)
def test_yaml_that_is_none_is_refused(old: str, new: str) -> None:
    with pytest.raises(ConverterError):
        recognise(YAML.replace(old, new).encode())


@pytest.mark.parametrize(
    ("old", "new", "pointer"),
    [
        ("scope: Cluster", "scope: Cluster\n  scope: Namespaced", "/spec/scope"),
        ("kind: Widget,", "kind: Widget, kind: Gadget,", "/spec/names/kind"),
    ],
)
def test_of_equal_keys_the_last_counts_and_it_is_said(old: str, new: str, pointer: str) -> None:
    assert old in YAML
    losses = recognise(YAML.replace(old, new).encode()).losses
    assert (pointer, "key") in [(loss.pointer, loss.construct) for loss in losses]


def test_aliases_count_as_if_they_were_written_out() -> None:
    """Ten schemas of 4,096 fields are fine, two thousand are not."""
    fields = "x:\n- &a0 {type: string}\n"
    fields += "".join(
        f"- &a{level} {{type: object, properties: {{a: *a{level - 1}, b: *a{level - 1}}}}}\n"
        for level in range(1, 13)
    )
    text = YAML.partition("  versions:")[0] + "  versions:\n"
    entry = "  - {name: v%d, served: true, schema: {openAPIV3Schema: *a12}}\n"
    some = fields + text + "".join(entry % number for number in range(1, 11))
    assert len(build(recognise(some.encode()).documents).documents) == 10
    with pytest.raises(LimitExceeded, match="aliases"):
        recognise((fields + text + "".join(entry % number for number in range(1, 2001))).encode())


def test_template_in_a_string_is_a_problem() -> None:
    text = YAML.replace("group: example.com", 'group: "{{ .Values.group }}"')
    built = build(recognise(text.encode()).documents)
    assert [(each.pointer, each.construct) for each in built.problems] == [("/spec/group", "manifest")]


def nodes(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a tree: a container and a key of it."""
    for key, child in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(child, dict | list):
            yield from nodes(child)


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.just([]), st.just({}),
    st.just([None]), st.just({"type": "string"}), st.just([{"type": "integer"}, {"type": "string"}]),
)  # fmt: skip
MUTABLE = widget(
    of_spec(
        {
            "type": "object",
            "properties": {
                "a": {"type": "array", "items": {"type": "string", "pattern": "^a$"}},
                "b": {"x-kubernetes-int-or-string": True, "anyOf": [{"minimum": 1}]},
                "c": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "d": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}], "maximum": 9},
            },
            "oneOf": [{"required": ["a"]}, {"properties": {"a": {"minItems": 1}}}],
        }
    ),
    subresources={"status": {}, "scale": {}},
    selectableFields=[{"jsonPath": ".spec.d"}],
)
PLACES = len(list(nodes(MUTABLE)))


@examples(400)
@given(st.lists(st.tuples(st.integers(0, PLACES - 1), JUNK), min_size=1, max_size=3))
def test_any_value_anywhere_is_published_or_reported(changes: list[tuple[int, Any]]) -> None:
    manifest = copy.deepcopy(MUTABLE)
    places = list(nodes(manifest))
    for place, value in changes:
        container, key = places[place]
        container[key] = value
    built = build([manifest, widget(kind="Gadget", plural="gadgets")])
    assert "com.example.v1.Gadget" in built.documents[V1]["components"]["schemas"]
    for key, document in built.documents.items():
        assert built.json(key) == canonical(document)
