"""What apiextensions-apiserver 0.34.1 said to 700 generated custom resources.

Recorded with the program in ``tests/benchmarks/go/apiextensions``: schema, metadata, embedded objects, sets
and maps. Kubernetes' formats k8s-short-name and k8s-long-name are not among them: that release ignores them.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from specmux_converters.crd import build
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Check, Severity, ValidationReport, Validator

RECORDED = Path(__file__).parent / "recorded" / "custom-resources.jsonl.gz"
CHECKS = (Check.SCHEMA, Check.METADATA, Check.LIST)


def validator(schema: dict[str, Any], release: str | None = "1.34") -> Validator:
    names = {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "singular": "widget"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    built = build(
        [
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.example.com"},
                "spec": spec,
            }
        ]
    )
    assert not built.problems
    return Validator(DocumentSet(built.documents), release=release)


def texts(report: ValidationReport, checks: tuple[Check, ...] = CHECKS) -> set[str]:
    found = (each for each in report.violations if each.severity is Severity.ERROR)
    return {violation.message for violation in found if violation.check in checks}


def wanted(
    answer: dict[str, Any], parts: tuple[str, ...] = ("schema", "metadata", "embedded", "lists")
) -> set[str]:
    return {text for part in parts for text in answer.get(part, [])}


def test_every_recorded_answer_is_ours(tally: Callable[[str, int], None]) -> None:
    cases = [orjson.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    wrong = []
    for case in cases:
        report = validator(case["schema"]).validate(orjson.dumps(case["object"]))
        answer = case["answer"]
        unlike = texts(report, (Check.SCHEMA, Check.LIST)) ^ wanted(answer, ("schema", "lists"))
        # Words about metadata are the newest's: of an older release the verdict is compared.
        around = texts(report, (Check.METADATA,))
        is_judged_alike = bool(around) == bool(wanted(answer, ("metadata", "embedded")))
        if report.fatal != answer.get("fatal") or (not report.fatal and (unlike or not is_judged_alike)):
            wrong.append(f"{report.fatal} {unlike} {around} of {case['object']}")
    tally("custom resources recorded from apiextensions", len(cases))
    assert len(cases) >= 400
    assert not wrong, "\n".join(wrong)


def test_numeric_formats_are_enforced_from_1_36_on(tally: Callable[[str, int], None]) -> None:
    """300 generated pairs of formats and values, with what apiextensions-apiserver 0.37.2 says."""
    path = RECORDED.with_name("numeric-formats.jsonl.gz")
    cases = [orjson.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    wrong, enforced = [], 0
    for case in cases:
        body, answer = orjson.dumps(case["object"]), wanted(case["answer"])
        found = texts(validator(case["schema"], None).validate(body))
        enforced += texts(validator(case["schema"], "1.35").validate(body)) != found
        if found != answer:
            wrong.append(f"{found ^ answer} of {case['object']}")
    tally("numeric formats recorded from apiextensions", len(cases))
    assert enforced >= 100
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
def test_the_newest_release(tally: Callable[[str, int], None]) -> None:
    """Digests of what 0.37.2 says of the schemas and lists of the same 700: 48 answers are others there."""
    digests = orjson.loads(RECORDED.with_name("custom-resources-1.37.json").read_bytes())
    cases = [orjson.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    differs = 0
    for case, digest in zip(cases, digests, strict=True):
        body = orjson.dumps(case["object"])
        found, before = (_of_schema(validator(case["schema"], release), body) for release in (None, "1.35"))
        assert hashlib.sha256("\n".join(found).encode()).hexdigest()[:12] == digest, case["object"]
        differs += found != before
    tally("custom resources recorded from apiextensions 0.37.2", len(cases))
    assert differs == 48


def _of_schema(checked: Validator, body: bytes) -> list[str]:
    found = (each for each in checked.validate(body).violations if each.severity is Severity.ERROR)
    return sorted({each.message for each in found if each.check in (Check.SCHEMA, Check.LIST)})
