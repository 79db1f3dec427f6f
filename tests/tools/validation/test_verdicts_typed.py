"""Strict decoding of built-in kinds: the verdicts of Go's decoder on generated objects of Kubernetes 1.35."""

from __future__ import annotations

import re
from collections.abc import Callable

import orjson

from shared_data import GOLDEN, documents, load, read
from specmux_converters.group_versions import GroupVersion
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Validator

EMBEDDED = re.compile(r"\.(?:TypeMeta|EphemeralContainerCommon)\b")
"""Names of embedded Go structs, which newer decoders put into a path and OpenAPI does not tell."""
NAMED_STRING = re.compile(r" of type v\w+\.\w+$")
"""Of named strings and structs; the former are "string" in OpenAPI."""


def test_verdicts_and_texts(tally: Callable[[str, int], None]) -> None:
    validator = Validator(
        DocumentSet({GroupVersion(key): load(path) for key, path in documents("1.35").items()})
    )
    cases = [orjson.loads(line) for line in read(GOLDEN / "json-schema/verdicts-typed.jsonl.gz").splitlines()]
    wrong, reworded = [], []
    for case in cases:
        report = validator.validate(orjson.dumps(case["object"]))
        accepts = report.fatal is None and not report.strict_errors
        if accepts != case["accept"]:
            wrong.append(f"{case['id']}: {report.fatal or report.strict_errors}")
        elif list(report.strict_errors) != case.get("strict", []):
            wrong.append(f"{case['id']}: {report.strict_errors}")
        elif report.fatal != case.get("fatal"):
            reworded.append((report.fatal or "", case["fatal"]))
    tally("verdicts-typed, compared", len(cases))
    tally("verdicts-typed, the same verdict in words that OpenAPI cannot tell", len(reworded))
    assert not wrong, "\n".join(wrong)
    assert not [pair for pair in reworded if plain(pair[0]) != plain(pair[1])]
    assert len(reworded) < len(cases) / 50


def plain(text: str) -> str:
    return NAMED_STRING.sub(" of type string", EMBEDDED.sub("", text))
