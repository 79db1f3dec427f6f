"""Recorded objects through pydantic's models of the working directory; prints counts as JSON.

    python round_trip.py VERDICTS BUNDLES

Runs beside the generator's pydantic, so it imports nothing of ours. On both sides ``null`` is left out, and
a whole number has no fraction, as Go writes it.
"""

from __future__ import annotations

import gzip
import importlib
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if each is not None}
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return [plain(each) for each in value if each is not None] if isinstance(value, list) else value


def module(stem: str) -> Any:
    return importlib.import_module(re.sub("[^a-z0-9]", "_", stem))


def verdict(case: dict[str, Any]) -> str:
    if case["accept"]:
        return "accepted"
    return "undecodable" if case.get("fatal") else "unknown fields"


def outcome(case: dict[str, Any]) -> str:
    key, kind, *_ = case["id"].split("|")
    _, *group, version = key.split("/")
    value = plain(case["object"])
    try:
        made = getattr(module(f"{(group or ['core'])[0]}_{version}"), kind).model_validate(value)
    except ValueError:
        return "refused"
    written = plain(made.model_dump(mode="json", by_alias=True, exclude_unset=True))
    return "same" if json.dumps(written, sort_keys=True) == json.dumps(value, sort_keys=True) else "differs"


def main() -> None:
    sys.path.insert(0, "")
    counts: Counter[str] = Counter()
    for path in Path(sys.argv[2]).glob("*.json"):
        if not path.name.endswith(".openapi.json"):
            kinds = [each["$ref"].rpartition("/")[2] for each in json.loads(path.read_text())["anyOf"]]
            counts["kinds"] += sum(hasattr(module(path.stem), kind) for kind in kinds)
    with gzip.open(sys.argv[1], "rt") as lines:
        for line in lines:
            case = json.loads(line)
            counts[f"{verdict(case)}: {outcome(case)}"] += 1
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
