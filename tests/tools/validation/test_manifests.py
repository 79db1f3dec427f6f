"""Manifests that people wrote: the verdicts of Kubernetes' decoder and of apiextensions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import orjson
import pytest

from data.built_in_swagger import documents_of
from shared_data import DATA, GOLDEN, documents, load, needs, read
from specmux_converters.group_versions import GroupVersion
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Validator
from tools.validation import record_decoding


def body(name: str) -> bytes | None:
    """One document of a file, ``path#index``."""
    path, _, index = name.rpartition("#")
    paths = (DATA / "manifests" / path, DATA / "manifests" / f"{path}.gz")
    found = [each for each in paths if each.is_file()]
    parts = record_decoding.SEPARATOR.split(read(found[0])) if found else []
    return parts[int(index)] if int(index) < len(parts) else None


@pytest.mark.long
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


def test_verdicts_on_own_manifests(tally: Callable[[str, int], None]) -> None:
    """Of client-go's decoder, 0.37.2; ``record_decoding.py`` records them."""
    validator = Validator(DocumentSet(documents_of("1.37")))
    recorded = orjson.loads(record_decoding.RECORDED.read_bytes())
    found = {}
    for name, data in record_decoding.manifests():
        if name in recorded:
            report = validator.validate(data, "application/yaml")
            found[name] = report.fatal is None and not report.strict_errors if report.is_known else "removed"
    tally("own manifests, compared", len(found))
    assert found == {**recorded, **{name: "removed" for name, each in found.items() if each == "removed"}}
    assert Counter(found.values()) > Counter({False: 40, True: 10})
    assert [name for name, each in found.items() if each == "removed"] == ["mistakes/04-removed-api.yaml#0"]
