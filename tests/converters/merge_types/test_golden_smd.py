"""Against the Go reference: recorded conversions of made-up schemas and of Kubernetes' own documents."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from shared_data import DATA, GOLDEN, documents, load, read, recorded_release
from specmux_converters.errors import InvalidSchemas
from specmux_converters.merge_types import to_merge_schema

RELEASE = DATA / "k8s-pairs" / "1.35" / "v3"
CASES = GOLDEN / "smd-cases"
SCHEMAS = GOLDEN / "smd-schema"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def converted(case: dict[str, Any], release: str | None = None) -> tuple[Any, list[str]]:
    """Types and errors, of which one is there."""
    document = {"components": {"schemas": case["schemas"]}}
    try:
        keeps = case["preserveUnknownFields"]
        schema = to_merge_schema(document, preserve_unknown_fields=keeps, release=release)
    except InvalidSchemas as error:
        return None, sorted(error.errors)
    return schema["types"], []


def test_made_up_schemas(tally: Callable[[str, int], None]) -> None:
    cases = [
        orjson.loads(line)
        for path in sorted(CASES.glob("*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    unequal = [
        case["name"]
        for case in cases
        if converted(case, recorded_release(CASES)) != (case["types"], sorted(case["errors"] or []))
    ]
    print(f"smd-cases: {len(cases) - len(unequal)} of {len(cases)}")
    assert cases
    assert not unequal
    tally("golden smd-cases: equal to Go", len(cases))


def test_documents_of_kubernetes(tally: Callable[[str, int], None]) -> None:
    compared, unequal = 0, []
    for path in sorted(SCHEMAS.rglob("*.yaml.gz")):
        key = str(path.relative_to(SCHEMAS)).removesuffix(".yaml.gz")
        document = next(
            (RELEASE / f"{key}.json{end}" for end in ("", ".gz") if (RELEASE / f"{key}.json{end}").is_file()),
            None,
        )
        if document is None:
            continue
        compared += 1
        if to_merge_schema(load(document), release=recorded_release(SCHEMAS)) != yaml.load(
            read(path), LOADER
        ):
            unequal.append(key)
    print(f"smd-schema: {compared - len(unequal)} of {compared}")
    if not compared:
        pytest.skip("no document that a recorded schema is of")
    assert not unequal
    tally("golden smd-schema: equal to Go", compared)


def test_the_newest_release(tally: Callable[[str, int], None]) -> None:
    """Digests of what kube-openapi of Kubernetes 0.37.2 makes of the same (``tests/benchmarks/go/smd``)."""
    recorded = orjson.loads((Path(__file__).parent / "recorded" / "schemas-1.37.json").read_bytes())
    cases = {
        case["name"]: case
        for path in sorted(CASES.glob("*.jsonl.gz"))
        for case in map(orjson.loads, gzip.decompress(path.read_bytes()).splitlines())
    }
    for key, path in documents("1.35").items():
        schemas = load(path)["components"]["schemas"]
        cases[key] = {"name": key, "schemas": schemas, "preserveUnknownFields": False}
    cases = {name: case for name, case in cases.items() if name in recorded}
    if not cases:
        pytest.skip("no case of a recorded answer")
    differs = 0
    for name, case in cases.items():
        types, errors = converted(case)
        differs += types != converted(case, "1.36")[0]
        answer = {"errors": errors} if types is None else {"types": types}
        text = orjson.dumps(answer, option=orjson.OPT_SORT_KEYS)
        assert hashlib.sha256(text).hexdigest()[:32] == recorded[name], name
    assert differs
    tally("smd-schema of 1.37: equal to Go", len(cases))
