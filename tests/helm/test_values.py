"""values.yaml, values.schema.json and README.md say the same, and wrong values are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from deadline import DEADLINE
from running.helm_chart import CHART, ROOT, lint, needs_helm

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())

APART = {"global", "config"}
"""Helm's own; and the configuration, whose schema comes from the settings."""


def in_values(values: dict[str, Any], schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Every key that the schema closes over; what is handed to Kubernetes as it is ends at its own key."""
    for key, value in values.items():
        inner = schema.get("properties", {}).get(key, {})
        yield f"{prefix}{key}"
        if isinstance(value, dict) and is_ours(inner) and value:
            yield from in_values(value, inner, f"{prefix}{key}.")


def in_schema(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, inner in schema["properties"].items():
        if key in APART:
            continue
        yield f"{prefix}{key}"
        if is_ours(inner) and prefix + key not in OPTIONAL:
            yield from in_schema(inner, f"{prefix}{key}.")


OPTIONAL = {"tls.certManager.issuerRef", "resources"}
"""Objects whose members are all optional: their defaults need not name each."""


def is_ours(schema: dict[str, Any]) -> bool:
    return "properties" in schema


def test_every_value_is_in_the_schema_and_the_other_way() -> None:
    values = {key: value for key, value in VALUES.items() if key not in APART}
    names = {key for key in in_values(values, SCHEMA) if key.rpartition(".")[0] not in OPTIONAL}
    assert names == set(in_schema(SCHEMA))
    assert len(names) > 100


def test_nothing_of_ours_is_open() -> None:
    def open_objects(schema: Any, path: str) -> Iterator[str]:
        if isinstance(schema, dict):
            if (
                "properties" in schema
                and "type" in schema
                and schema.get("additionalProperties") is not False
            ):
                yield path
            for key, inner in schema.items():
                yield from open_objects(inner, f"{path}/{key}")

    assert list(open_objects(SCHEMA, "")) == []


@needs_helm
def test_generated_files_are_current() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "helm" / "generate.py", "--check"],
        capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr


@needs_helm
@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("replicaCount=two", "replicaCount"),
        ("replicaCount=-1", "replicaCount"),
        ("replicas=3", "replicas"),
        ("image.pullPolicy=Sometimes", "image.pullPolicy"),
        ("image.digest=sha256:1", "image.digest"),
        ("imagePullSecrets[0]=registry", "imagePullSecrets"),
        ("fullnameOverride=Upper", "fullnameOverride"),
        ("tls.type=none", "tls.type"),
        ("tls.type=existingSecret", "existingSecret"),
        ("tls.selfSigned.validityDays=0", "validityDays"),
        ("tls.certManager.duration=90d", "duration"),
        ("cache.sizeLimit=much", "cache.sizeLimit"),
        ("serviceAccount.name=a b", "serviceAccount.name"),
        ("rbac.metricsReader.subjects[0].kind=Robot", "rbac.metricsReader"),
        ("podLabels.a.b=c", "podLabels"),
        ("podDisruptionBudget.maxUnavailable=half", "podDisruptionBudget"),
        ("autoscaling.maxReplicas=0", "autoscaling.maxReplicas"),
        ("service.port=70000", "service.port"),
        ("service.type=ExternalName", "service.type"),
        ("ingress.enabled=true", "ingress.hosts"),
        ("httpRoute.enabled=true", "httpRoute.parentRefs"),
        ("serviceMonitor.interval=often", "serviceMonitor.interval"),
        ("dashboard.enabled=true", "dashboard"),
        ("extraArgs=--verbose", "extraArgs"),
        ("config.listen.prot=1", "prot"),
        ("config.listen.port=70000", "config.listen.port"),
        ("config.log.level=loud", "config.log.level"),
        ("config.memory.documents_bytes=-1", "documents_bytes"),
        ("config.auth.mode=basic", "config.auth.mode"),
        ("config.proxy=everything", "config.proxy"),
        ("config.backends[0].url=https://a", "name"),
        ("config.backends[0].name=a,config.backends[0].kind=v4", "kind"),
        ("config.backends[0].name=a,config.backends[0].token=secret", "token"),
    ],
)
def test_wrong_value_is_refused(value: str, named: str) -> None:
    result = lint(f"--set={value}")
    assert result.returncode == 1
    assert named in result.stdout
    assert "additional property" in result.stdout.lower() or "values.yaml" in result.stdout
