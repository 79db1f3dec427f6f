"""Writes ``recorded/kubectl-validate-generated.json.gz``: what kubectl-validate says to generated objects.

    GOBIN=~/judges go install sigs.k8s.io/kubectl-validate@v0.0.4
    .venv/bin/python tests/tools/validation/record_kubectl_validate.py ~/judges/kubectl-validate

The objects are those of ``golden/json-schema/verdicts-typed`` that Go decodes, with a name alone as metadata;
without null, whose place it fills, and line breaks in base64, which it refuses. The documents are the
built-in ones of 1.35.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import orjson

TESTS = Path(__file__).resolve().parents[2]
sys.path.append(str(TESTS))

from data.built_in_swagger import documents_of  # noqa: E402
from reference_data import RECORDED as GIVEN  # noqa: E402
from shared_data import read  # noqa: E402

RECORDED = Path(__file__).parent / "recorded" / "kubectl-validate-generated.json.gz"
LEFT_OUT = ("List", "DeleteOptions", "Status", "WatchEvent", "CustomResourceDefinition")
"""No objects that are stored, and the kind that test_definitions.py judges by a newer release."""


def objects() -> list[dict[str, Any]]:
    cases = map(orjson.loads, read(GIVEN / "golden/json-schema/verdicts-typed.jsonl.gz").splitlines())
    accepted = (case["object"] for case in cases if case["accept"])
    stored = (each for each in accepted if not each["kind"].endswith(LEFT_OUT))
    named = ({**each, "metadata": {"name": "a"}} for each in stored)
    return [each for each in named if not re.search(rb"null|\\n", orjson.dumps(each))]


def texts(answer: dict[str, Any]) -> list[str]:
    causes = answer.get("details", {}).get("causes", [])
    return [f"{each.get('field', '')}: {each['message']}" for each in causes]


def main(program: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for key, document in documents_of("1.35").items():
            path = folder / "schemas" / f"{key}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(orjson.dumps(document))
        made = objects()
        (folder / "objects").mkdir()
        for number, value in enumerate(made):
            (folder / "objects" / f"{number:04}.json").write_bytes(orjson.dumps(value))
        command = [program, "--local-schemas", "schemas", "-o", "json", "objects"]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        answers = orjson.loads(done.stdout)
    recorded = [
        [value, texts(answer)]
        for number, value in enumerate(made)
        for answer in answers[f"objects/{number:04}.json"]
    ]
    RECORDED.write_bytes(gzip.compress(orjson.dumps(recorded), mtime=0))
    print(f"{len(recorded)} objects, {sum(bool(said) for _, said in recorded)} refused")


if __name__ == "__main__":
    main(sys.argv[1])
