"""Manifests that people wrote: the verdicts of Kubernetes' decoder and of apiextensions."""

from __future__ import annotations

import re
from collections.abc import Callable

import orjson
import pytest

from shared_data import DATA, GOLDEN, documents, load, needs, read
from specmux_converters.group_versions import GroupVersion
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Validator

pytestmark = [pytest.mark.long]

SEPARATOR = re.compile(rb"^---[^\n]*\n", re.MULTILINE)


def body(name: str) -> bytes | None:
    """One document of a file, ``path#index``."""
    path, _, index = name.rpartition("#")
    paths = (DATA / "manifests" / path, DATA / "manifests" / f"{path}.gz")
    found = [each for each in paths if each.is_file()]
    parts = SEPARATOR.split(read(found[0])) if found else []
    return parts[int(index)] if int(index) < len(parts) else None


@needs("data/manifests")
def test_verdicts(tally: Callable[[str, int], None]) -> None:
    """But for kinds of APIs that 1.35 does not serve any more: the recording knew their types."""
    served = {GroupVersion(key): load(path) for key, path in documents("1.35").items()}
    validator = Validator(DocumentSet(served))
    cases = [orjson.loads(line) for line in read(GOLDEN / "json-schema/manifests.jsonl.gz").splitlines()]
    wrong, removed, compared = [], 0, 0
    for case in cases:
        data = body(case["document"])
        if data is None or case["mode"] != "typed":
            continue
        report = validator.validate(data, "application/yaml")
        compared += 1
        if case["accept"] and not report.is_known:
            removed += 1
        elif (report.fatal is None and not report.strict_errors) != case["accept"]:
            wrong.append(f"{case['document']}: {report.fatal} {report.strict_errors}")
    tally("manifests, compared", compared)
    tally("manifests, of kinds that are not served any more", removed)
    assert removed <= len(cases) / 50
    assert not wrong, "\n".join(wrong)
