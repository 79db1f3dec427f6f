"""Custom resources: the verdicts and texts of apiextensions-apiserver on generated objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from data.own_definitions import own_clusters
from shared_data import DATA, GOLDEN, needs, read
from specmux_converters.crd import build
from specmux_converters.resources import GroupVersionKind
from specmux_converters.yaml import parse_yaml_stream
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Check, ValidationReport, Validator

MOST_RECORDED = 4
"""Errors of one object that were kept."""
OPERATION = "of type v1.ManagedFieldsOperationType"


def definitions() -> list[dict[str, Any]]:
    """Of several with one name the first: the objects were made for it."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((DATA / "crds").rglob("*")):
        if path.is_file() and path.name != "INDEX.json":
            for manifest in parse_yaml_stream(read(path)):
                if manifest.get("kind") == "CustomResourceDefinition":
                    found.setdefault(manifest["metadata"]["name"], manifest)
    return list(found.values())


def preserving(manifests: list[dict[str, Any]]) -> list[GroupVersionKind]:
    return [
        GroupVersionKind(manifest["spec"]["group"], version["name"], manifest["spec"]["names"]["kind"])
        for manifest in manifests
        if manifest["spec"].get("preserveUnknownFields")
        for version in manifest["spec"]["versions"]
    ]


def texts(report: ValidationReport) -> list[str]:
    return sorted(each.message for each in report.violations if each.check in (Check.SCHEMA, Check.LIST))


@needs("data/crds")
@pytest.mark.long
def test_verdicts_and_texts(tally: Callable[[str, int], None]) -> None:
    manifests = definitions()
    validator = Validator(
        DocumentSet(build(manifests).documents), preserving=preserving(manifests), release="1.34"
    )
    cases = [orjson.loads(line) for line in read(GOLDEN / "json-schema/verdicts-cr.jsonl.gz").splitlines()]
    wrong = []
    for case in cases:
        report = validator.validate(orjson.dumps(case["object"]))
        found, wanted = texts(report), sorted(case.get("validation", []))
        is_cut = len(wanted) == MOST_RECORDED and set(wanted) < set(found)
        fatal = case.get("fatal", "").replace(OPERATION, "of type string") or None
        if (report.fatal, list(report.strict_errors)) != (fatal, case.get("strict", [])):
            wrong.append(f"{case['id']}: {report.fatal} {report.strict_errors}")
        elif not fatal and not report.strict_errors and found != wanted and not is_cut:
            wrong.append(f"{case['id']}: {found} instead of {wanted}")
    tally("verdicts-cr, compared", len(cases))
    assert not wrong, "\n".join(wrong)


def test_verdicts_on_objects_of_own_definitions(tally: Callable[[str, int], None]) -> None:
    """Of apiextensions-apiserver 0.37.2."""
    wrong, compared, refused = [], 0, 0
    for cluster in own_clusters():
        validator = Validator(DocumentSet(build(cluster["definitions"]).documents))
        for value, answer in cluster["objects"]:
            report = validator.validate(orjson.dumps(value))
            wanted = sorted({*answer.get("schema", ()), *answer.get("lists", ())})
            compared += 1
            refused += bool(wanted or answer.get("fatal"))
            if report.fatal != answer.get("fatal") or (not report.fatal and texts(report) != wanted):
                wrong.append(f"{value}: {report.fatal} {texts(report)} instead of {answer}")
    tally("objects of own definitions, compared", compared)
    tally("objects of own definitions, refused", refused)
    assert compared > refused + 100 > 200
    assert not wrong, "\n".join(wrong[:20])
