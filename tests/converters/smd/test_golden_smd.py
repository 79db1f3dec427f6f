"""Against the Go reference: recorded conversions of made-up schemas and of Kubernetes' own documents."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import orjson
import pytest
import yaml

from shared_data import DATA, GOLDEN, load, read, shared
from specmux_converters.errors import InvalidSchemas
from specmux_converters.smd import to_merge_schema

RELEASE = DATA / "k8s-pairs" / "1.35" / "v3"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def converted(case: dict[str, Any]) -> tuple[Any, list[str]]:
    """Types and errors, of which one is there."""
    document = {"components": {"schemas": case["schemas"]}}
    try:
        schema = to_merge_schema(document, preserve_unknown_fields=case["preserveUnknownFields"])
    except InvalidSchemas as error:
        return None, sorted(error.errors)
    return schema["types"], []


@shared
def test_made_up_schemas(tally: Callable[[str, int], None]) -> None:
    cases = [
        orjson.loads(line)
        for path in sorted((GOLDEN / "smd-cases").glob("*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    unequal = [
        case["name"] for case in cases if converted(case) != (case["types"], sorted(case["errors"] or []))
    ]
    print(f"smd-cases: {len(cases) - len(unequal)} of {len(cases)}")
    assert cases
    assert not unequal
    tally("golden smd-cases: equal to Go", len(cases))


@shared
def test_documents_of_kubernetes(tally: Callable[[str, int], None]) -> None:
    folder = GOLDEN / "smd-schema"
    compared, unequal = 0, []
    for path in sorted(folder.rglob("*.yaml.gz")):
        key = str(path.relative_to(folder)).removesuffix(".yaml.gz")
        document = next(
            (RELEASE / f"{key}.json{end}" for end in ("", ".gz") if (RELEASE / f"{key}.json{end}").is_file()),
            None,
        )
        if document is None:
            continue
        compared += 1
        if to_merge_schema(load(document)) != yaml.load(read(path), LOADER):
            unequal.append(key)
    print(f"smd-schema: {compared - len(unequal)} of {compared}")
    if not compared:
        pytest.skip("no document that a recorded schema is of")
    assert not unequal
    tally("golden smd-schema: equal to Go", compared)
