"""What ``specmux check`` costs for each MB of document, beside openapi-spec-validator alone.

    .venv/bin/python tests/benchmarks/bench_check.py [--release 1.35] [--rounds 3]

Process CPU time of one process, medians of the rounds, over the documents of a release of Kubernetes. Both
judge the same parsed JSON; ours parses it too, places what the library finds, and looks for what it does not.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

import orjson  # noqa: E402
from openapi_spec_validator import OpenAPIV30SpecValidator  # noqa: E402

from shared_data import documents, read  # noqa: E402
from specmux_converters.group_versions import GroupVersion  # noqa: E402
from specmux_tools.document_checks.document import check  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--release", default="1.35")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    texts = {key: read(path) for key, path in documents(options.release).items()}
    megabytes = sum(map(len, texts.values())) / 1e6
    print(f"{len(texts)} documents of Kubernetes {options.release}, {megabytes:.1f} MB")
    rounds = [(cpu(lambda: alone(texts)), cpu(lambda: ours(texts))) for _ in range(options.rounds)]
    theirs, mine = (statistics.median(column) / megabytes for column in zip(*rounds, strict=True))
    print(f"openapi-spec-validator alone  {theirs:6.3f} s of CPU for each MB")
    print(f"specmux check                 {mine:6.3f} s of CPU for each MB, {mine / theirs:.2f} of it")


def alone(texts: dict[str, bytes]) -> None:
    for text in texts.values():
        sum(1 for _ in OpenAPIV30SpecValidator(orjson.loads(text)).iter_errors())


def ours(texts: dict[str, bytes]) -> None:
    for key, text in texts.items():
        check(text, GroupVersion(key))


def cpu(work: Callable[[], None]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
