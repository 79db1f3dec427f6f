"""Writes ``recorded/own-manifests.json``: which of our own manifests Go decodes strictly.

    (cd tests/benchmarks/go/decoding && go build -o ~/judges/decoding .)
    .venv/bin/python tests/tools/validation/record_decoding.py ~/judges/decoding

Kinds that it does not know are left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson

TESTS = Path(__file__).resolve().parents[2]
DEFECTS = TESTS / "recorded/data/defects"
RECORDED = Path(__file__).parent / "recorded" / "own-manifests.json"
SEPARATOR = re.compile(rb"^---[^\n]*\n", re.MULTILINE)


def manifests() -> Iterator[tuple[str, bytes]]:
    """Each document of a file, ``path#index``."""
    for path in sorted(DEFECTS.rglob("*.yaml")):
        for index, part in enumerate(SEPARATOR.split(path.read_bytes())):
            if part.strip():
                yield f"{path.relative_to(DEFECTS)}#{index}", part


def main(program: str) -> None:
    named = list(manifests())
    asked = b"".join(orjson.dumps(data.decode(errors="replace")) + b"\n" for _, data in named)
    done = subprocess.run([program], input=asked, stdout=subprocess.PIPE, check=True)
    answers = map(orjson.loads, done.stdout.splitlines())
    accepted = {
        name: answer["accept"]
        for (name, _), answer in zip(named, answers, strict=True)
        if 'no kind "' not in answer.get("error", "")
    }
    RECORDED.write_bytes(orjson.dumps(accepted, option=orjson.OPT_INDENT_2) + b"\n")
    print(f"{len(accepted)} manifests, {sum(accepted.values())} accepted")


if __name__ == "__main__":
    main(sys.argv[1])
