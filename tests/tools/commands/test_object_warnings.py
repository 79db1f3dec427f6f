"""Warnings as apiservers send them, and what kubectl would fail at: said once, and never a fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from converters.crd.widgets import of_spec, widget
from shared_data import SHARED
from specmux_aggregator.cli import main
from specmux_converters.resources import GroupVersionKind
from specmux_tools.kind_lifecycles import deprecation_of

OBJECT = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}


def run(*words: str) -> Result:
    return CliRunner().invoke(main, [*words], catch_exceptions=False)


@pytest.mark.parametrize(
    ("kind", "release", "text"),
    [
        (
            GroupVersionKind("policy", "v1beta1", "PodSecurityPolicy"),
            None,
            "policy/v1beta1 PodSecurityPolicy is deprecated in v1.21+, unavailable in v1.25+",
        ),
        (
            GroupVersionKind("autoscaling", "v2beta2", "HorizontalPodAutoscaler"),
            None,
            "autoscaling/v2beta2 HorizontalPodAutoscaler is deprecated in v1.23+, unavailable in v1.26+; "
            "use autoscaling/v2 HorizontalPodAutoscaler",
        ),
        (
            GroupVersionKind("", "v1", "Endpoints"),
            "1.33",
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        (GroupVersionKind("", "v1", "Endpoints"), "1.32", None),
        (GroupVersionKind("apps", "v1", "Deployment"), None, None),
    ],
)
def test_built_in_kinds(kind: GroupVersionKind, release: str | None, text: str | None) -> None:
    assert deprecation_of(kind, (), release=release) == text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"deprecated": True}, "example.com/v1 Widget is deprecated"),
        ({"deprecated": True, "deprecationWarning": "use Gadget"}, "use Gadget"),
        ({"deprecated": False}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("place", ["--file", "--directory", "beside"])
def test_definitions(place: str, said: dict[str, Any], text: str | None, tmp_path: Path) -> None:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds/crd.yaml").write_text(yaml.safe_dump(widget(**said)))
    objects = tmp_path / "objects.yaml"
    objects.write_text("---\n".join(yaml.safe_dump({**OBJECT, "metadata": {"name": name}}) for name in "ab"))
    crd = tmp_path / "crds/crd.yaml"
    words = {"--file": ("--file", str(crd)), "--directory": ("--directory", str(crd.parent))}
    with_definition = words.get(place, (str(crd), "--skip", "CustomResourceDefinition"))
    result = run("validate", str(objects), *with_definition, "--fail-on", "warning")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("Warning: ") == result.stderr.count(f"Warning: {text}\n") == bool(text)


def test_an_object_of_a_deprecated_kind_is_valid(tmp_path: Path) -> None:
    value = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1beta3", "kind": "FlowSchema"}
    file = tmp_path / "flow.yaml"
    file.write_text(yaml.safe_dump({**value, "metadata": {"name": "a"}}))
    result = run(
        "validate", str(file), "--directory", str(SHARED / "data/k8s-pairs/1.30/v3"), "--release", "1.30"
    )
    assert result.exit_code == 0, result.output
    assert (
        "Warning: flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema is deprecated in v1.29+, "
        "unavailable in v1.32+; use flowcontrol.apiserver.k8s.io/v1 FlowSchema\n"
    ) in result.stderr


@pytest.mark.parametrize(("length", "is_large"), [(250_000, False), (262_144, True)])
@pytest.mark.parametrize("command", ["check", "validate"])
def test_what_client_side_apply_cannot_keep_is_said(
    command: str, length: int, is_large: bool, tmp_path: Path
) -> None:
    definition = widget(of_spec({"type": "object", "description": "x" * length}))
    file = tmp_path / "crd.yaml"
    file.write_text(yaml.safe_dump(definition))
    (tmp_path / "object.yaml").write_text(yaml.safe_dump(OBJECT))
    words = {
        "check": ("--no-cache", "--jobs", "1"),
        "validate": (str(tmp_path / "object.yaml"), "--skip", "CustomResourceDefinition"),
    }
    result = run(command, str(file), *words[command])
    assert result.exit_code == 0, result.output
    assert ("use kubectl apply --server-side" in result.output) is is_large
