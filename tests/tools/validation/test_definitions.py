"""What an apiserver refuses of a definition; texts by apiextensions-apiserver 0.37.2, which says them
(``tests/benchmarks/go/definitions``)."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from shared_data import DATA, documents, load, needs
from specmux_converters.crd import build
from specmux_converters.group_versions import GroupVersion
from specmux_converters.resources import GroupVersionKind
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Validator
from specmux_tools.validation.definitions.faults import definition_faults, metadata_faults
from specmux_tools.validation.report import Check, Severity

RECORDED = Path(__file__).parent / "recorded" / "definitions.jsonl.gz"
SCHEMA = "spec.validation.openAPIV3Schema"
REFUSED = "not checked: its definition is refused"
LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
ESTABLISHED = {"type": "Established", "status": "True"}
LOST_VERSION = (
    'status.storedVersions[0]: Invalid value: "v0": missing from spec.versions; v0 was previously a storage '
    "version, and must remain in spec.versions until a storage migration ensures no data remains persisted "
    "in v0 and removes v0 from status.storedVersions"
)
NOTHING_STORED = (
    'spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,'
    '"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,'
    '"SelectableFields":null}]: must have exactly one version marked as storage version'
)


def definition(**spec: Any) -> dict[str, Any]:
    """With one version of a good schema; ``spec`` replaces fields."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crons.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "crons", "kind": "Cron"},
            "versions": [version()],
            **spec,
        },
    }


def version(properties: Any = None, **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties or {"spec": {"type": "object"}}}
    return {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        **fields,
    }


def of_schema(**schema: Any) -> dict[str, Any]:
    """The definition of a field ``spec`` with this schema."""
    return definition(versions=[version({"spec": schema})])


def texts(manifest: dict[str, Any]) -> list[str]:
    return [each.text for each in definition_faults(manifest)]


def item_list(**item: Any) -> dict[str, Any]:
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
        "items": {"type": "object", "properties": {"a": {"type": "string"}}, **item},
    }


def test_a_good_definition_has_no_fault() -> None:
    assert texts(definition()) == []
    assert texts({**definition(), "apiVersion": "apiextensions.k8s.io/v1beta1"}) == []


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (
            {**definition(), "metadata": {"name": "cron.example.org"}},
            ['metadata.name: Invalid value: "cron.example.org": must be spec.names.plural+"."+spec.group'],
        ),
        (
            {**definition(), "metadata": {}},
            ["metadata.name: Required value: name or generateName is required"],
        ),
        (
            definition(scope="Namespace"),
            [
                'spec.scope: Unsupported value: "Namespace": supported values: "Cluster", "Namespaced"',
            ],
        ),
        (
            definition(names={"plural": "crons", "kind": "Cron", "listKind": "Cron", "shortNames": ["c_r"]}),
            [
                f'spec.names.shortNames[0]: Invalid value: "c_r": {LABEL}',
                'spec.names.listKind: Invalid value: "Cron": kind and listKind may not be the same',
            ],
        ),
        (
            definition(versions=[version(storage=False)]),
            [
                NOTHING_STORED,
                "status.storedVersions: Invalid value: null: must have at least one stored version",
            ],
        ),
        (
            definition(versions=[version(name="1")]),
            [f'spec.{each}: Invalid value: "1": {LABEL}' for each in ("versions[0].name", "version")],
        ),
        (
            definition(versions=[version(schema=None)]),
            ["spec.versions[0].schema.openAPIV3Schema: Required value"],
        ),
        (
            definition(conversion={"strategy": "Webhook"}),
            [
                "spec.conversion.webhookClientConfig: Required value: required when strategy is set to "
                "Webhook",
                "spec.conversion.conversionReviewVersions: Required value",
            ],
        ),
        (
            definition(
                versions=[
                    version(additionalPrinterColumns=[{"name": "a", "type": "int", "jsonPath": "spec"}])
                ]
            ),
            [
                'spec.additionalPrinterColumns[0].type: Invalid value: "int": must be one of '
                "boolean,date,integer,number,string",
                'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": must be a simple json '
                "path starting with .",
            ],
        ),
        (
            of_schema(type="object", properties={"replicas": {"minimum": 1}}),
            [
                f"{SCHEMA}.properties[spec].properties[replicas].type: Required value: must not be empty for "
                "specified object fields"
            ],
        ),
        (
            of_schema(type="string", pattern="(a"),
            [
                f'{SCHEMA}.properties[spec].pattern: Invalid value: "(a": must be a valid regular '
                "expression, but isn't: error parsing regexp: missing closing ): `(a`"
            ],
        ),
        (
            of_schema(type="object", anyOf=[{"type": "object"}]),
            [
                f"{SCHEMA}.properties[spec].anyOf[0].type: Forbidden: must be empty to be structural",
            ],
        ),
        (
            of_schema(type="array", items={"type": "string"}, uniqueItems=True),
            [
                f"{SCHEMA}.properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to true since "
                "the runtime complexity becomes quadratic"
            ],
        ),
        (
            of_schema(**item_list()),
            [
                f"{SCHEMA}.properties[spec].items.properties[a].default: Required value: this property is in "
                "x-kubernetes-list-map-keys, so it must have a default or be a required property"
            ],
        ),
        (of_schema(**item_list(required=["a"])), []),
        (of_schema(**item_list(properties={"a": {"type": "string", "default": "x"}})), []),
        (
            of_schema(
                type="object",
                properties={"a": {"type": "string"}},
                additionalProperties={"type": "string"},
            ),
            [
                f"{SCHEMA}.properties[spec].additionalProperties: Forbidden: additionalProperties and "
                "properties are mutual exclusive"
            ],
        ),
    ],
)
def test_texts_are_those_of_an_apiserver(manifest: dict[str, Any], expected: list[str]) -> None:
    assert texts(manifest) == expected


def test_a_nested_schema_restricts_what_the_structure_has() -> None:
    manifest = definition()
    schema = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["anyOf"] = [{"properties": {"specs": {"minLength": 1}}}]
    assert texts(manifest) == [
        f"{SCHEMA}.properties[specs]: Required value: because it is defined in "
        f"{SCHEMA}.anyOf[0].properties[specs]"
    ]


def test_a_rule_is_compiled_where_the_schema_is_sound() -> None:
    rules = [{"rule": "self.zz =="}]
    sound = of_schema(type="object", **{"x-kubernetes-validations": rules})
    (found,) = definition_faults(sound)
    place = f"{SCHEMA}.properties[spec].x-kubernetes-validations[0].rule: Invalid value: "
    assert found.text.startswith(place)
    assert "Syntax error: mismatched input '<EOF>'" in found.text
    assert found.path[-3:] == ("x-kubernetes-validations", 0, "rule")
    broken = of_schema(type="object", properties={"a": {}}, **{"x-kubernetes-validations": rules})
    assert [text.endswith("specified object fields") for text in texts(broken)] == [True]


def test_schemas_that_differ_are_named_by_their_version() -> None:
    other = version({"spec": {"type": "array"}}, name="v2", storage=False)
    (text,) = texts(definition(versions=[version(), other]))
    assert text == (
        "spec.versions[1].schema.openAPIV3Schema.properties[spec].items: Required value: must be specified"
    )
    (twice,) = texts(definition(versions=[version(), version(storage=False)]))
    assert twice.endswith("]: must contain unique version names")


@pytest.mark.parametrize("root", ["allOf", "enum", "x-kubernetes-map-type"])
def test_a_status_restricts_the_root(root: str) -> None:
    manifest = definition(versions=[version(subresources={"status": {}})])
    schema = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert texts(manifest) == []
    schema[root] = "atomic" if root == "x-kubernetes-map-type" else [{"minProperties": 1}]
    assert "fields are allowed at the root of the schema if the status subresource" in texts(manifest)[0]


@pytest.mark.parametrize("value", [None, 1, "a", [1], {"a": 1}])
@pytest.mark.parametrize("key", ["names", "versions", "group", "scope", "conversion"])
def test_anything_may_stand_in_a_definition(key: str, value: Any) -> None:
    manifest = definition(**{key: value})
    before = deepcopy(manifest)
    assert isinstance(texts(manifest), list)
    assert manifest == before


@pytest.mark.parametrize("value", [None, 1, "a", [[]], [{}], {"a": []}, True])
@pytest.mark.parametrize(
    "key", ["type", "items", "properties", "anyOf", "x-kubernetes-list-map-keys", "x-kubernetes-list-type"]
)
def test_anything_may_stand_in_a_schema(key: str, value: Any) -> None:
    assert isinstance(texts(of_schema(**{**item_list(required=["a"]), key: value})), list)


@pytest.mark.parametrize("value", [1, "a", [1], {"a": 1}])
@pytest.mark.parametrize(
    "place",
    [("name",), ("selectableFields", 0, "jsonPath"), ("schema", "openAPIV3Schema", "properties", "spec")],
)
def test_anything_may_stand_in_a_version(place: tuple[str | int, ...], value: Any) -> None:
    manifest = definition(versions=[version(selectableFields=[{"jsonPath": ".spec"}])])
    inner = manifest["spec"]["versions"][0]
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value
    assert isinstance(definition_faults(manifest, old=manifest), list)
    assert isinstance(definition_faults(manifest, old=definition()), list)


def test_objects_of_a_refused_definition_are_not_blamed() -> None:
    manifest = of_schema(type="string", pattern="(a")
    validator = Validator(DocumentSet(build([manifest]).documents), definitions=[manifest])
    body = b'{"apiVersion": "example.org/v1", "kind": "Cron", "metadata": {"name": "a"}, "spec": "a"}'
    report = validator.validate(body)
    (note,) = report.violations
    assert (note.severity, note.check) == (Severity.NOTE, Check.NOT_CHECKED)
    assert note.message.startswith(f"{REFUSED}: {SCHEMA}.properties[spec].pattern")
    assert report.is_valid
    assert not report.is_complete
    assert report.kind == GroupVersionKind("example.org", "v1", "Cron")


@needs("data/crds")
def test_definitions_of_projects_have_no_fault(tally: Callable[[str, int], None]) -> None:
    found = {}
    for file in sorted((DATA / "crds").rglob("*.yaml")):
        for manifest in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader):
            if isinstance(manifest, dict) and manifest.get("kind") == "CustomResourceDefinition":
                found[file.name] = texts(manifest)
    tally("definitions of projects without a fault", sum(not each for each in found.values()))
    assert len(found) >= 30
    assert {name: each for name, each in found.items() if each} == {}


def test_every_recorded_definition_is_judged_as_kubernetes_does(tally: Callable[[str, int], None]) -> None:
    """Mutated definitions and random schemas; one for each family of texts, of creations and of updates."""
    cases = [orjson.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    wrong = []
    for case in cases:
        found = {each.text for each in definition_faults(case["definition"], old=case.get("old"))}
        if found != set(case["faults"]):
            wrong.append(f"{sorted(found)} instead of {sorted(set(case['faults']))}")
    tally("definitions recorded from apiextensions", len(cases))
    tally("of them updates", sum("old" in case for case in cases))
    assert len(cases) > 400
    assert not wrong, "\n".join(wrong)


def test_an_update_leaves_what_is_stored() -> None:
    """ValidateCustomResourceDefinitionUpdate: optional keys of lists stay so, names do not change."""
    loose = of_schema(**item_list())
    assert len(texts(loose)) == 1
    stored = {**loose, "status": {"storedVersions": ["v0"], "conditions": [ESTABLISHED]}}
    assert [each.text for each in definition_faults(loose, old=stored)] == [LOST_VERSION]
    renamed = definition(names={"plural": "crons", "kind": "Job"})
    (fault,) = definition_faults(renamed, old={**definition(), "status": {"conditions": [ESTABLISHED]}})
    assert fault.text == 'spec.names.kind: Invalid value: "Job": field is immutable'


def test_a_validator_knows_the_stored_definition() -> None:
    name = GroupVersion("apis/apiextensions.k8s.io/v1")
    kinds = Validator(DocumentSet({name: load(documents("1.35")[name])}))
    loose = of_schema(**item_list())
    assert not kinds.validate(orjson.dumps(loose)).is_valid
    assert kinds.validate(orjson.dumps(loose), old=loose).is_valid


@pytest.mark.parametrize(
    ("approval", "is_one"),
    [
        ("https://github.com/kubernetes/enhancements/pull/1111", True),
        ("unapproved, an experiment", True),
        ("https://", False),
        ("pull/1111", False),
        ("https://git hub.com/pull/1111", False),
        ("https://github.com:x/pull/1111", False),
    ],
)
def test_an_approval_is_what_gos_parser_takes_for_a_url(approval: str, is_one: bool) -> None:
    """Groups of Kubernetes need one (apihelpers.GetAPIApprovalState, which asks url.Parse)."""
    metadata = {"name": "as.x.k8s.io", "annotations": {"api-approved.kubernetes.io": approval}}
    spec = {"group": "x.k8s.io", "names": {"plural": "as"}}
    found = [each.text for each in metadata_faults({"metadata": metadata}, spec)]
    assert any("must have approval annotation" in each for each in found) is not is_one
