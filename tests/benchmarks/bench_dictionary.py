"""An upgrade from one release to another, for clients that have the documents of the first.

    .venv/bin/python tests/benchmarks/bench_dictionary.py [--clients 100] [--from 1.32] [--to 1.35]

A service over a folder, and clients of the library, each with a cache directory of its own. The bytes are
those of the documents' bodies as sent. CPU is that of the clients' process, from the stored root to the
stored documents; a tenth of the clients does the same with gzip and with zstd. Bars: a client's bytes are at
most 0.15 of gzip's, the first who have to wait for a delta included, and its CPU is at most that of gzip.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from figures import IS_MADE, keep

from running.process import specmux, write_documents
from running.processor_time import cpu_of
from shared_data import DATA, read
from specmux_cache import CacheOptions, SchemaCache
from specmux_converters.document import canonical, content_hash, parse

BYTES_BAR, CPU_BAR = 0.15, 1.0
CODINGS = ("dcz", "gzip", "zstd")
KEPT = 3.0
"""Seconds after which a fetched document is kept as a predecessor."""

CLIENT = """
import json, sys, time
import specmux_cache.http.transport as transport
import specmux_cache.reading.fetch as fetch
from specmux_cache import CacheOptions, SchemaCache
url, coding, names, *directories = sys.argv[1:]
read, sent = transport.read_body, 0
def read_body(*arguments):
    global sent
    body = read(*arguments)
    sent += len(body)
    return body
async def no_dictionary(*_):
    return None
transport.read_body = read_body
if coding != "dcz":
    transport.ACCEPT_ENCODING = coding
    fetch.Exchange._dictionary = no_dictionary
spent = total = 0
for number, directory in enumerate(directories):
    with SchemaCache(url, CacheOptions(directory), background=False) as cache:
        cache.paths()
        begun, sent = time.process_time(), 0
        for name in json.loads(names):
            cache.schema(name)
        if number:  # the first has imported what the others find
            spent += time.process_time() - begun
        total += sent
print(total / len(directories), spent / (len(directories) - 1))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--from", dest="old", default="1.32")
    parser.add_argument("--to", dest="new", default="1.35")
    options = parser.parse_args()
    old, new = documents(options.old), documents(options.new)
    changed = sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
    print(f"{options.old} to {options.new}: {len(changed)} of {len(old)} documents changed")
    old, new = ({name: each[name] for name in changed} for each in (old, new))
    with tempfile.TemporaryDirectory() as folder:
        spent = upgrade(Path(folder), old, new, options.clients)
    keep("dictionary", {f"{len(new)} documents": [spent[each][0] for each in CODINGS]})
    for coding, (size, cpu) in spent.items():
        print(f"{coding:5} {size:8.1f} KB  {cpu:7.1f} ms CPU of a client")
    size, cpu = (ours / gzip for ours, gzip in zip(spent["dcz"], spent["gzip"], strict=True))
    print(f"of gzip: bytes {size:.3f} (bar {BYTES_BAR}), CPU {cpu:.2f} (bar {CPU_BAR})")
    if not IS_MADE and (size > BYTES_BAR or cpu > CPU_BAR):
        sys.exit("a bar is missed")


def documents(release: str) -> dict[str, bytes]:
    """By group-version, as a service publishes them."""
    folder = DATA / "k8s-pairs" / release / "v3"
    return {
        str(path.relative_to(folder)).partition(".json")[0]: canonical(parse(read(path)))
        for path in sorted(folder.rglob("*.json*"))
        if path.name != "INDEX.json"
    }


def upgrade(
    folder: Path, old: dict[str, bytes], new: dict[str, bytes], clients: int
) -> dict[str, tuple[float, float]]:
    """KB and milliseconds of CPU of a client, by coding."""
    served = str(write_documents(folder / "served", old))
    flags = ("--directory", served, "--listen-port", "0", "--changes-settle", "0.1")
    spent: dict[str, tuple[float, float]] = {}
    with specmux("serve", *flags) as service:
        service.until_ready()
        url = f"http://127.0.0.1:{service.port}"
        with SchemaCache(url, CacheOptions(folder / "first")) as cache:
            cache.prefetch()
        time.sleep(KEPT)
        write_documents(folder / "served", new)
        wanted = {name: content_hash(body) for name, body in new.items()}
        is_published = lambda: all(service.paths()[name].endswith(wanted[name]) for name in new)  # noqa: E731
        service.until(is_published, "the new documents are published")
        for coding in CODINGS:
            count = clients if coding == "dcz" else max(10, clients // 10)
            before = cpu_of(service.pid)
            spent[coding] = upgrade_clients(folder, url, coding, list(new), count)
            cpu = (cpu_of(service.pid) - before) / count
            print(f"{coding}: {cpu * 1000:.1f} ms CPU of the service for each client")
    return spent


def upgrade_clients(folder: Path, url: str, coding: str, names: list[str], count: int) -> tuple[float, float]:
    directories = [folder / "clients" / str(number) for number in range(count)]
    for directory in directories:
        shutil.copytree(folder / "first", directory)
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, url, coding, json.dumps(names), *directories],
        capture_output=True,
        text=True,
        check=True,
    )
    shutil.rmtree(folder / "clients")
    size, cpu = map(float, done.stdout.split())
    return size / 1e3, cpu * 1e3


if __name__ == "__main__":
    main()
