"""The matrix of KEP-2885 beside a real kube-apiserver: operation, media type, kind, fault, directive.

Each request was sent with ``dryRun=All`` to 1.34.4 and 1.37.2; verdict, Status and Warnings are compared.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from shared_data import DATA, read
from specmux_converters.crd import build
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Directive, ValidationReport, Validator
from specmux_tools.validation.messages import report_warnings, status_of, warning_fields

RECORDED = Path(__file__).parent / "recorded"
V3 = DATA / "k8s-pairs" / "1.35" / "v3"

REASONS = {
    "two-unknown": "Go goes through a map in no order, and tells the first undeclared field that it meets",
    "type-and-unknown": "as two-unknown: Go may meet the wrong type first, and then tells both",
}
"""Of faults, why an answer may differ."""

_SHOWN = re.compile(r'( "" is invalid: patch: Invalid value: )"\{(?:[^"\\]|\\.)*"(: .*)', re.DOTALL)


def validator(definition: dict[str, Any], release: str) -> Validator:
    documents: dict[Any, Any] = {
        key: orjson.loads(read(V3 / f"{key}.json.gz")) for key in ("api/v1", "apis/apps/v1")
    }
    return Validator(DocumentSet({**documents, **build([definition]).documents}), release=release)


def judged(judge: Validator, request: dict[str, Any], stored: dict[str, Any]) -> ValidationReport:
    old = stored[request["kind"]] if request.get("updates") else None
    body, directive = request["body"].encode(), Directive(request["directive"])
    if request["method"] == "PATCH":
        return judge.patch(old, body, request["contentType"], directive)
    return judge.validate(body, request["contentType"], directive, old)


def answer(report: ValidationReport, *, creates: bool) -> dict[str, Any]:
    status = status_of(report)
    found: dict[str, Any] = {
        "code": status["code"] if status is not None else 201 if creates else 200,
        "warnings": warning_fields(report_warnings(report)),
    }
    if status is not None:
        found["status"] = {name: status[name] for name in ("message", "reason", "details") if name in status}
    return found


def comparable(found: dict[str, Any]) -> dict[str, Any]:
    """Causes once each, and no patched object in a message: an apiserver shows all of it, as it is stored."""
    status = found.get("status")
    if status is not None:
        details = dict(status.get("details") or {})
        shown = _SHOWN.fullmatch(status["message"])
        if shown:
            status["message"], details = shown[1] + shown[2], {}
        if "causes" in details:
            causes = {orjson.dumps(each, option=orjson.OPT_SORT_KEYS) for each in details["causes"]}
            details["causes"] = sorted(causes)
        status["details"] = details
    return found


@pytest.mark.parametrize(("release", "excepted"), [("1.34", 0), ("1.37", 10)])
def test_answers_are_those_of_an_apiserver(release: str, excepted: int) -> None:
    recorded = orjson.loads(gzip.decompress((RECORDED / f"requests-{release}.json.gz").read_bytes()))
    judge = validator(recorded["definition"], recorded["release"])
    equal, wrong = 0, []
    for request in recorded["requests"]:
        creates = request["operation"] in ("create", "apply-create")
        ours = comparable(answer(judged(judge, request, recorded["stored"]), creates=creates))
        real = comparable(request["answer"])
        if release != "1.37":  # texts are the newest's
            ours, real = {"code": ours["code"]}, {"code": real["code"]}
        if ours == real:
            equal += 1
        elif request["fault"] not in REASONS:
            wrong.append(f"{ours} instead of {real} for {request}")
    count = len(recorded["requests"])
    print(f"requests-{release}: {equal} of {count}")
    assert count >= 200
    assert not wrong, "\n".join(wrong[:5])
    assert equal == count - excepted
