"""What the chart renders is what Kubernetes takes: every example, for three versions, strictly."""

from __future__ import annotations

import copy
import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import shared_data
from running.helm_chart import (
    CHART,
    EXAMPLES,
    VERSIONS,
    Object,
    everywhere,
    helm,
    lint,
    manifest,
    objects,
    require_helm,
)

require_helm()

CUSTOM = {
    ("monitoring.coreos.com/v1", "ServiceMonitor"): "prometheus-operator/*_servicemonitors.yaml.gz",
    ("monitoring.coreos.com/v1", "PrometheusRule"): "prometheus-operator/*_prometheusrules.yaml",
    ("cert-manager.io/v1", "Certificate"): "cert-manager/*_certificates.yaml.gz",
    ("cert-manager.io/v1", "Issuer"): "cert-manager/*_issuers.yaml.gz",
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): "gateway-api/experimental/*_httproutes.yaml*",
    (
        "gateway.networking.k8s.io/v1",
        "BackendTLSPolicy",
    ): "gateway-api/experimental/*_backendtlspolicies.yaml*",
}
"""(apiVersion, kind) of what is no part of Kubernetes -> its definition in the reference data."""

LAX = """
extends: default
rules:
  line-length: disable
  document-start: disable
  indentation: {spaces: consistent, indent-sequences: whatever}
  truthy: {check-keys: false}
  octal-values: enable
"""
STRICT = """
extends: default
rules:
  line-length: {max: 120}
  document-start: disable
  octal-values: enable
"""


def kind_of(item: Object) -> tuple[str, str]:
    return item["apiVersion"], item["kind"]


def distinct(found: list[Object]) -> list[Object]:
    """Most examples render most objects alike."""
    return [json.loads(text) for text in dict.fromkeys(json.dumps(item, sort_keys=True) for item in found)]


@functools.cache
def definition(api_version: str, kind: str) -> Any:
    """A validator of one custom kind that also refuses what the definition does not know."""
    from jsonschema import Draft7Validator

    (path,) = (shared_data.DATA / "crds").glob(CUSTOM[api_version, kind])
    crd = yaml.load(shared_data.read(path), Loader=yaml.CSafeLoader)
    (schema,) = (
        version["schema"]["openAPIV3Schema"]
        for version in crd["spec"]["versions"]
        if version["name"] == api_version.rpartition("/")[2]
    )
    closed = close(copy.deepcopy(schema))
    closed["properties"]["metadata"] = {"type": "object"}
    return Draft7Validator(closed)


def close(schema: Any) -> Any:
    if isinstance(schema, dict):
        for inner in list(schema.values()):
            close(inner)
        is_open = "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields")
        if isinstance(schema.get("properties"), dict) and schema.get("type") == "object" and not is_open:
            schema["additionalProperties"] = False
    elif isinstance(schema, list):
        for inner in schema:
            close(inner)
    return schema


@pytest.mark.parametrize("example", EXAMPLES)
def test_lint_has_nothing_to_say(example: str) -> None:
    result = lint(f"--values={EXAMPLES[example]}")
    assert result.returncode == 0, result.stdout
    assert "[WARNING]" not in result.stdout


@pytest.mark.parametrize("fault", ["{{ .Values.image.repositry.name }}", "kind: [", "{{ if }}"])
def test_lint_notices_a_broken_template(fault: str, tmp_path: Path) -> None:
    broken = shutil.copytree(CHART, tmp_path / "specmux")
    (broken / "templates" / "service.yaml").write_text(f"apiVersion: v1\nname: {fault}\n")
    assert helm("lint", "--strict", str(broken)).returncode == 1


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_objects_are_valid(version: str, tally: Callable[[str, int], None]) -> None:
    validator = pytest.importorskip("kubernetes_validate")
    found = distinct([item for example in EXAMPLES for item in objects(example, version=version)])
    own = [item for item in found if kind_of(item) not in CUSTOM]
    for item in own:
        assert validator.validate(item, version, strict=True) == version
    tally("chart objects valid in Kubernetes' schemas", len(own))
    assert len(own) > 60


def test_a_field_that_kubernetes_does_not_know_is_noticed() -> None:
    validator = pytest.importorskip("kubernetes_validate")
    (deployment,) = (item for item in objects() if item["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["livenessProb"] = {}
    with pytest.raises(validator.ValidationError, match="livenessProb"):
        validator.validate(deployment, VERSIONS[-1], strict=True)


@shared_data.needs("data/crds")
def test_custom_objects_are_valid(tally: Callable[[str, int], None]) -> None:
    pytest.importorskip("jsonschema")
    found = distinct([item for example in EXAMPLES for item in objects(example) if kind_of(item) in CUSTOM])
    assert {kind_of(item) for item in found} == CUSTOM.keys()
    for item in found:
        faults = [error.message for error in definition(*kind_of(item)).iter_errors(item)]
        assert faults == [], kind_of(item)
    tally("chart objects valid in their CustomResourceDefinitions", len(found))


@shared_data.needs("data/crds")
def test_a_field_that_a_custom_definition_does_not_know_is_noticed() -> None:
    pytest.importorskip("jsonschema")
    (monitor,) = (item for item in objects("monitoring") if item["kind"] == "ServiceMonitor")
    monitor["spec"]["endpoints"][0]["tlsConfig"]["ca"]["secrets"] = {}
    (error,) = definition(*kind_of(monitor)).iter_errors(monitor)
    assert "secrets" in error.message


def test_every_custom_kind_is_known() -> None:
    pytest.importorskip("kubernetes_validate")
    foreign = {kind_of(item) for example in EXAMPLES for item in objects(example) if is_foreign(item)}
    assert foreign == CUSTOM.keys()


def is_foreign(item: Object) -> bool:
    group = item["apiVersion"].partition("/")[0]
    return "." in group and (not group.endswith(".k8s.io") or group.startswith("gateway."))


@pytest.mark.parametrize(("example", "version"), list(everywhere()))
def test_rendered_text_is_clean_yaml(example: str, version: str) -> None:
    assert problems(manifest(example, version=version), LAX) == []


@pytest.mark.parametrize(
    "path",
    [CHART / "Chart.yaml", CHART / "values.yaml", CHART / "files" / "rules.yaml", *EXAMPLES.values()],
    ids=lambda path: path.name,
)
def test_sources_are_clean_yaml(path: Any) -> None:
    assert problems(path.read_text(), STRICT) == []


def problems(text: str, rules: str) -> list[str]:
    linter = pytest.importorskip("yamllint.linter")
    config = pytest.importorskip("yamllint.config")
    return [str(problem) for problem in linter.run(text, config.YamlLintConfig(rules))]


def test_a_key_that_stands_twice_is_noticed() -> None:
    assert problems("a: 1\na: 2\n", LAX) != []


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_object_is_rendered_twice(example: str) -> None:
    names = [
        (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"])
        for item in objects(example)
    ]
    assert sorted(set(names), key=str) == sorted(names, key=str)
