"""What JSON Schemas cost: all kinds, one kind, what tells of all, their size, and a 304 of the service.

    .venv/bin/python tests/benchmarks/bench_schemas.py [--rounds 5]

Process CPU time: medians of the rounds, each from parsed documents with nothing kept; a kind by itself as its
place among all. "304" is one decision of the service beside that of a document, in microseconds. "memory" is
the peak of a process that makes every kind of one document after the other, and what it had before the first.
"yaml-language-server" is from a document that is opened to its first diagnostics, in seconds of the clock:
with a schema that was never read, and with one that was; it is left out where there is no npm.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import gzip
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

from figures import keep  # noqa: E402

from data import catalogue_documents as catalogue  # noqa: E402
from running.schema_clients import MISSING, LanguageServer, node_modules  # noqa: E402
from running.service import directory, service  # noqa: E402
from specmux_aggregator.http.messages import Request  # noqa: E402
from specmux_converters.group_versions import GroupVersion  # noqa: E402
from specmux_converters.json_schema.catalogue import text_of  # noqa: E402
from specmux_converters.json_schema.definitions import dispatcher  # noqa: E402
from specmux_converters.json_schema.document import DocumentSchemas  # noqa: E402
from specmux_converters.json_schema.forms import STRICT, SchemaForm  # noqa: E402
from specmux_tools.json_schema_job import example_of  # noqa: E402

BUNDLE = SchemaForm(is_named=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        report_memory(options.memory)
        return
    catalogue.schemas()
    gc.disable()  # the heap of this process is that of all documents, which the service's is not
    kept = {"all kinds": (report_kinds(options.rounds),), "all.json": (report_all(options.rounds),)}
    keep("schemas", kept)
    with tempfile.TemporaryDirectory() as folder:
        for key, document in (catalogue.of_kubernetes() | catalogue.of_custom_resources()).items():
            Path(folder, key.replace("/", " ")).write_bytes(orjson.dumps(document))
        command = [sys.executable, str(HERE), "--memory", folder]
        print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    report_editor()
    asyncio.run(report_unchanged())


def fresh() -> list[DocumentSchemas]:
    return [DocumentSchemas(each.document, key, example_of) for key, each in catalogue.schemas().items()]


def texts(form: SchemaForm) -> list[tuple[float, bytes]]:
    """Each kind's seconds and bytes."""
    found = []
    for each in fresh():
        for kind in each.kinds:
            start = time.process_time()
            text = text_of(each.kind(kind, form))
            found.append((time.process_time() - start, text))
    return found


def report_kinds(rounds: int) -> float:
    """Seconds of all kinds in the strict form."""
    strict = 0.0
    for form in (STRICT, BUNDLE):
        whole = median(lambda form=form: texts(form), rounds)  # type: ignore[misc]
        strict = strict or whole
        made = texts(form)
        costs = sorted(cost * 1000 for cost, _ in made)
        size = sum(len(text) for _, text in made)
        packed = sum(len(gzip.compress(text, 5)) for _, text in made)
        print(
            f"{form.name}: {len(made)} kinds, {whole:.2f} s, {size / 1e6:.1f} MB, gzip {packed / 1e6:.1f} MB"
        )
        places = [
            (name, costs[int(share * (len(costs) - 1))])
            for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1))
        ]
        print("  one kind, ms: " + ", ".join(f"{name} {cost:.1f}" for name, cost in places))
    return strict


def report_all(rounds: int) -> float:
    def make() -> bytes:
        schemas = dict(zip(catalogue.schemas(), fresh(), strict=True))
        return text_of(dispatcher(schemas, STRICT))

    taken = median(make, rounds)
    print(f"all.json: {taken:.2f} s, {len(make()) / 1e6:.1f} MB")
    return taken


def report_editor() -> None:
    """Each in a server of its own; the schemas are files, so that making them is not in it."""
    modules = node_modules()
    if modules is None:
        print(f"yaml-language-server: {MISSING}")
        return
    text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: many}\n"
    owner, kind = catalogue.kinds()["apps/v1", "Deployment"]
    files = {"a kind": owner.kind(kind, STRICT), "all.json": dispatcher(catalogue.schemas(), STRICT)}
    with tempfile.TemporaryDirectory() as folder:
        for name, schema in files.items():
            path = Path(folder, "schema.json" if name == "a kind" else name)
            path.write_bytes(text_of(schema))
            server = LanguageServer(modules)
            try:
                settings = {"schemas": {path.as_uri(): ["*.yaml"]}}
                first, again = (seconds_to_diagnostics(server, text, settings) for _ in range(2))
            finally:
                server.close()
            print(f"yaml-language-server, {name}: first diagnostics after {first:.2f} s, then {again:.2f} s")


def seconds_to_diagnostics(server: LanguageServer, text: str, settings: dict[str, Any]) -> float:
    start = time.perf_counter()
    _, told = server.open(text, settings)
    assert told, "a wrong object was not told of"
    return time.perf_counter() - start


def report_memory(folder: Path) -> None:
    """One document after the other, as the service's process has them."""
    before = peak()
    for path in sorted(folder.iterdir()):
        key = GroupVersion(path.name.replace(" ", "/"))
        schemas = DocumentSchemas(orjson.loads(path.read_bytes()), key, example_of)
        for kind in schemas.kinds:
            text_of(schemas.kind(kind, STRICT))
    print(f"memory: {peak():.0f} MiB at most, {before:.0f} before", end="")


def peak() -> float:
    """MiB that this process had at most (Linux; getrusage counts the process before exec, too)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


async def report_unchanged() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for key, document in catalogue.of_kubernetes().items():
            path = Path(folder, f"{key}.json")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(orjson.dumps(document))
        async with service(directory("files", Path(folder))) as client:
            await client.ready()
            for path in ("/openapi/v3/apis/apps/v1", "/schemas/apps/deployment_v1.json", "/schemas/all.json"):
                _, fields, _ = await client.get(path, method="HEAD")
                request = Request("GET", path, if_none_match=fields["ETag"])
                decide = client.app.service.immediate
                answer = decide(request)
                assert answer is not None
                assert answer.status == 304
                start = time.process_time()
                for _ in range(10_000):
                    decide(request)
                print(f"304 of {path}: {(time.process_time() - start) * 100:.1f} µs")


def median(work: Callable[[], object], rounds: int) -> float:
    """Seconds."""
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return statistics.median(spent)


if __name__ == "__main__":
    main()
