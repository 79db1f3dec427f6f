"""The chart as Helm renders it. Helm comes with ``make helm``; without it, what needs it is skipped."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deadline import DEADLINE

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "specmux"
EXAMPLES = {path.name.removesuffix("-values.yaml"): path for path in sorted((CHART / "ci").glob("*.yaml"))}
"""Name -> values file."""
VERSIONS = ("1.27", "1.32", "1.37")
"""Of Kubernetes: the oldest that the chart takes, one between, the newest there are schemas of."""
NAMESPACE = "specmux-ns"

Object = dict[str, Any]


def _helm() -> str | None:
    beside = Path(sys.executable).with_name("helm")
    return str(beside) if beside.exists() else shutil.which("helm")


HELM = _helm()
NO_HELM = "helm is not installed: make helm brings it"
needs_helm = pytest.mark.skipif(HELM is None, reason=NO_HELM)


def require_helm() -> None:
    """Skips the whole module that calls it, as one."""
    if HELM is None:
        pytest.skip(NO_HELM, allow_module_level=True)


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert HELM is not None
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, timeout=DEADLINE, check=False)


def lint(*arguments: str) -> subprocess.CompletedProcess[str]:
    return helm("lint", "--strict", str(CHART), *arguments)


@functools.cache
def manifest(example: str = "default", *arguments: str, version: str = VERSIONS[-1]) -> str:
    """What the chart renders as with the values of an example."""
    result = helm(
        "template", "release", str(CHART), f"--namespace={NAMESPACE}", f"--kube-version={version}",
        f"--values={EXAMPLES[example]}", *arguments,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


def objects(example: str = "default", *arguments: str, version: str = VERSIONS[-1]) -> list[Object]:
    rendered = manifest(example, *arguments, version=version)
    return [item for item in yaml.load_all(rendered, Loader=yaml.CSafeLoader) if item]


def of_kind(kind: str, example: str = "default", *arguments: str, **options: str) -> list[Object]:
    return [item for item in objects(example, *arguments, **options) if item["kind"] == kind]


def one(kind: str, example: str = "default", *arguments: str, **options: str) -> Object:
    (found,) = of_kind(kind, example, *arguments, **options)
    return found


def container(example: str = "default", *arguments: str, **options: str) -> Object:
    (only,) = one("Deployment", example, *arguments, **options)["spec"]["template"]["spec"]["containers"]
    return dict(only)


def configuration(example: str = "default", *arguments: str) -> str:
    """The text of specmux.yaml."""
    (found,) = (
        item["data"]["specmux.yaml"]
        for item in of_kind("ConfigMap", example, *arguments)
        if "specmux.yaml" in item.get("data", {})
    )
    return str(found)


def everywhere() -> Iterator[tuple[str, str]]:
    """Every example with every version."""
    return ((example, version) for version in VERSIONS for example in EXAMPLES)
