"""Every answer of Kubernetes' own strict decoding: its texts, its warnings, its fatal errors."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import cache
from typing import Any

import orjson
import pytest

from shared_data import DATA, GOLDEN, documents, load, recorded_release
from specmux_converters.crd import build
from specmux_converters.group_versions import GroupVersion
from specmux_converters.resources import GroupVersionKind
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Directive, Validator
from specmux_tools.validation.compiled_kinds import Kinds, TypedKind
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.messages import strict_message, warning_fields, warning_texts
from specmux_tools.validation.patching.strict import (
    strict_errors_of_converted,
    strict_errors_of_json_patch,
    strict_errors_of_merge_patch,
)

WIDGET = GroupVersionKind("example.com", "v1", "Widget")
MEDIA_TYPES = {"json": "application/json", "yaml": "application/yaml", "cbor": "application/cbor"}


@cache
def built_in() -> DocumentSet:
    return DocumentSet({GroupVersion(key): load(path) for key, path in documents("1.35").items()})


@cache
def built_in_validator() -> Validator:
    return Validator(built_in(), release=recorded_release(GOLDEN))


@cache
def widgets(schema: bytes, preserving: bool) -> Validator:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "singular": "widget"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": orjson.loads(schema)},
                }
            ],
        },
    }
    built = build([definition])
    assert not built.problems
    return Validator(
        DocumentSet(built.documents),
        preserving=[WIDGET] if preserving else [],
        release=recorded_release(GOLDEN),
    )


def check(case: dict[str, Any], body: bytes) -> tuple[str | None, list[str]]:
    """The fatal error, and the errors of strict decoding."""
    match case["mode"]:
        case "cr":
            validator = widgets(orjson.dumps(case["schema"]), case.get("preserve", False))
            report = validator.validate(body, MEDIA_TYPES[case["ctype"]], Directive.STRICT, kind=WIDGET)
        case "typed":
            report = built_in_validator().validate(body, MEDIA_TYPES[case["ctype"]], Directive.STRICT)
        case mode:
            try:
                return None, patched(mode, body)
            except Undecodable as error:
                return error.text, []
    return report.fatal, list(report.strict_errors)


def patched(mode: str, body: bytes) -> list[str]:
    if mode == "json-patch":
        return strict_errors_of_json_patch(body)
    if mode == "merge-patch":
        return strict_errors_of_merge_patch(body)
    value = orjson.loads(body)
    group, _, version = value["apiVersion"].rpartition("/")
    found = Kinds(built_in(), frozenset()).find(GroupVersionKind(group, version, value["kind"]))
    assert isinstance(found, TypedKind)
    return strict_errors_of_converted(value, found.node)


def disagreement(case: dict[str, Any]) -> str | None:
    raw = case.get("body", "")
    body = base64.b64decode(raw) if case.get("body_is_base64") else raw.encode("utf-8", "surrogatepass")
    fatal, errors = check(case, body)
    if "fatal" in case:
        # A path of the program that was asked stands behind this.
        wanted = case["fatal"].partition(" in scheme ")[0]
        return None if fatal == wanted else f"{fatal!r} instead of {wanted!r}"
    if fatal is not None:
        return f"{fatal!r} instead of {case['errors']!r}"
    # CBOR of custom resources is ours to check: upstream reports nothing there.
    is_ours = case["mode"] == "cr" and case["ctype"] == "cbor"
    if errors != case["errors"] and not is_ours:
        return f"{errors!r} instead of {case['errors']!r}"
    if "message" in case and case["message"] and strict_message(errors) != case["message"]:
        return f"{strict_message(errors)!r} instead of {case['message']!r}"
    if "warnings" in case and warning_fields(warning_texts(errors)) != case["warnings"]:
        return f"{warning_fields(warning_texts(errors))!r} instead of {case['warnings']!r}"
    return None


@pytest.mark.parametrize("name", ["field-validation.jsonl", "field-validation-2.jsonl"])
def test_every_recorded_answer_is_ours(name: str, tally: Callable[[str, int], None]) -> None:
    path = GOLDEN / name
    cases = [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
    faults = [f"{case['name']}: {fault}" for case in cases if (fault := disagreement(case))]
    print(f"{name}: {len(cases) - len(faults)} of {len(cases)}")
    tally(f"{name}, recorded", len(cases))
    tally(f"{name}, equal", len(cases) - len(faults))
    assert not faults, "\n".join(faults)
    assert DATA.is_dir()
