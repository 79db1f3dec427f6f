"""The check that ``make sbom`` ends with notices what it is there for."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from repository.bom_contents import faults

INSTALLED = {"specmux": "0.1.0", "prometheus-client": "0.26.0", "orjson": "3.13.0"}
BOM: dict[str, Any] = {
    "metadata": {
        "component": {
            "name": "specmux",
            "version": "0.1.0",
            "licenses": [{"license": {"id": "Apache-2.0"}}],
        }
    },
    "components": [
        {
            "name": "prometheus_client",
            "version": "0.26.0",
            "licenses": [{"expression": "Apache-2.0 AND BSD-2-Clause"}],
        },
        {"name": "orjson", "version": "3.13.0", "licenses": [{"license": {"name": "MPL 2.0"}}]},
    ],
}


def test_complete_bill_has_no_faults() -> None:
    assert faults(BOM, INSTALLED) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda bom: bom["components"].pop(), "missing: orjson"),
        (lambda bom: bom["components"].append({"name": "pip", "version": "1"}), "unexpected: pip"),
        (
            lambda bom: bom["components"][0].update(version="0.25.0"),
            "prometheus-client: listed is 0.25.0, installed is 0.26.0",
        ),
        (lambda bom: bom["components"][0].pop("version"), "prometheus-client: listed is None"),
        (lambda bom: bom["components"][1].update(licenses=[]), "orjson: no licence"),
        (lambda bom: bom["components"][1].update(licenses=[{"license": {}}]), "orjson: no licence"),
        (lambda bom: bom["metadata"]["component"].update(name="other"), "missing: specmux"),
    ],
)
def test_fault_of_a_bill_is_found(change: Any, fault: str) -> None:
    bom = copy.deepcopy(BOM)
    change(bom)
    assert any(found.startswith(fault) for found in faults(bom, INSTALLED))


def test_environment_without_the_wheel_is_a_fault() -> None:
    assert faults(BOM, {}) == ["specmux is not installed in the environment"]
