"""Search: what the index costs to build and to hold, and how long queries take.

    .venv/bin/python tests/benchmarks/bench_search.py [--rounds 5]

Over the documents of 1.35 with those of the reference data's custom resources, and over ten times as many
custom resources, no description twice. Processor time; memory as tracemalloc counts it, documents left out.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import orjson
import zstandard

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

from figures import keep  # noqa: E402

from data.explained_documents import release  # noqa: E402
from data.search_queries import QUERIES  # noqa: E402
from shared_data import DATA  # noqa: E402
from specmux_converters.document import Document  # noqa: E402
from specmux_converters.group_versions import GroupVersion  # noqa: E402
from specmux_tools.search_index.index import FieldIndex  # noqa: E402
from specmux_tools.search_index.query import search  # noqa: E402
from specmux_tools.search_index.stored import dump, load  # noqa: E402

COPIES = 10
QUERIES_MORE = ("the", "name", "spec", "status", "e", "a", "object", "config", "type string", "kubernetes")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: wants the reference data")
        return
    once = measured("1.35 and its custom resources", release(), options.rounds)
    often = measured(f"custom resources {COPIES} times", multiplied(release()), max(1, options.rounds // 3))
    keep("search", dict(zip(("build", "loaded from a file"), zip(once, often, strict=True), strict=True)))


def multiplied(documents: dict[GroupVersion, Document]) -> dict[GroupVersion, Document]:
    """Every custom resource ten times, in groups of its own, with a word of its own in each description."""
    made = dict(documents)
    for key, document in documents.items():
        group = key.split("/")[1]
        if "." not in group or group.endswith("k8s.io"):
            continue
        text = orjson.dumps(document).decode()
        for copy in range(1, COPIES):
            other = text.replace(group, f"c{copy}.{group}").replace(
                '"description":"', f'"description":"c{copy} '
            )
            made[GroupVersion(key.replace(group, f"c{copy}.{group}"))] = orjson.loads(other)
    return made


def measured(title: str, documents: dict[GroupVersion, Document], rounds: int) -> tuple[float, float]:
    """Shows what it costs, and returns the seconds that building and loading take."""
    builds, largest = [], 0.0
    for _ in range(rounds):
        gc.collect()
        started = time.process_time()
        index = FieldIndex()
        for key, document in documents.items():
            before = time.process_time()
            index.put(key, document, hash="1")
            largest = max(largest, time.process_time() - before)
        index.places  # noqa: B018
        builds.append(time.process_time() - started)
    stored = dump(index)
    packed = zstandard.ZstdCompressor(level=3).compress(stored)
    started = time.process_time()
    load(zstandard.ZstdDecompressor().decompress(packed))
    loading = time.process_time() - started
    taken = sorted(each for _ in range(3) for each in queries(index))
    print(f"{title}: {len(index.documents)} documents, {len(index.graph.names)} entries")
    print(f"  build {statistics.median(builds):.2f} s, largest document {1000 * largest:.0f} ms")
    print(f"  held {held(documents):.1f} MiB; on disk {len(packed) / 1e6:.1f} MB, loaded in {loading:.2f} s")
    p99 = taken[int(len(taken) * 0.99)]
    print(f"  queries: median {taken[len(taken) // 2]:.1f} ms, p99 {p99:.1f} ms")
    return statistics.median(builds), loading


def queries(index: FieldIndex) -> list[float]:
    made = []
    for query in (*(each for each, _ in QUERIES), *QUERIES_MORE):
        for words in (query, query[: max(2, len(query) // 2)]):
            started = time.process_time()
            search(index, words)
            made.append(1000 * (time.process_time() - started))
    return made


def held(documents: Any) -> float:
    """MiB of an index."""
    tracemalloc.start()
    index = FieldIndex()
    for key, document in documents.items():
        index.put(key, document, hash="1")
    index.places  # noqa: B018
    del document
    gc.collect()
    amount = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    return amount


if __name__ == "__main__":
    main()
