"""``/openapi/v2`` made of v3, and the smaller forms of documents, of Kubernetes 1.35.

    .venv/bin/python tests/benchmarks/bench_openapi_v2.py [--rounds 7]

Processor time, the least of the rounds: cold from bytes to bytes, and after one group-version changed. The
memory of the process that merges, before anybody asked and after. The size and the parsing of each profile. A
cold ``specmux explain`` of a server with profiles, and of one without.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

import orjson  # noqa: E402

from running.process import Process  # noqa: E402
from shared_data import DATA, documents, load  # noqa: E402
from specmux_aggregator.http.messages import Coding  # noqa: E402
from specmux_aggregator.model.backend import BackendName  # noqa: E402
from specmux_aggregator.model.observation import Hash  # noqa: E402
from specmux_aggregator.model.snapshot import DocumentKey  # noqa: E402
from specmux_aggregator.workers.openapi_v2 import merge_swagger  # noqa: E402
from specmux_aggregator.workers.worker import _OBJECTS_UNTIL_COLLECTED  # noqa: E402
from specmux_cache import CacheOptions, SchemaCache  # noqa: E402
from specmux_converters.document import DEFAULT_LIMITS, parse  # noqa: E402
from specmux_converters.group_versions import GroupVersion  # noqa: E402
from specmux_converters.media_types import JSON  # noqa: E402
from specmux_converters.profiles import PROFILES  # noqa: E402

SPECMUX = Path(sys.executable).with_name("specmux")
CHANGED = GroupVersion("apis/apps/v1")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    if not DATA.is_dir():
        print("skipped: wants the reference data")
        return
    # As an apiserver writes them; the files have spaces.
    bodies = {GroupVersion(key): orjson.dumps(load(path)) for key, path in documents("1.35").items()}
    context = multiprocessing.get_context("spawn")  # nothing of this process is counted
    with context.Pool(1) as pool:
        merging = pool.apply(merged, (bodies, rounds))
    whole = sum(map(len, bodies.values()))
    parsed = least(lambda: [orjson.loads(body) for body in bodies.values()], rounds)
    print(f"{'documents':<40} {whole / 1e6:7.2f} MB, parsed in {1000 * parsed:5.1f} ms CPU")
    for name, value in merging.items():
        print(f"{name:<40} {value:7.1f}")
    for media_type, make in PROFILES.items():
        made = [orjson.dumps(make(orjson.loads(body))) for body in bodies.values()]
        size = sum(map(len, made))
        taken = least(lambda made=made: [orjson.loads(body) for body in made], rounds)  # type: ignore[misc]
        name = media_type.rpartition("=")[2]
        print(f"profile {name:<32} {size / 1e6:7.2f} MB, parsed in {taken / parsed:5.2f} of that")
    commands(rounds)


def merged(bodies: dict[GroupVersion, bytes], rounds: int) -> dict[str, float]:
    """In a process as the service has it: only this is ever asked of it."""
    gc.freeze()
    gc.set_threshold(_OBJECTS_UNTIL_COLLECTED)
    cold, warm = [], []
    before = resident()
    for number in range(rounds):
        # Another hash each: nothing is known.
        cold.append(cpu(bodies, hash=f"{number}", changed=f"{number}", brought=list(bodies)))
        if number == 0:
            after = resident()
        warm.append(cpu(bodies, hash=f"{number}", changed=f"{number}+", brought=[CHANGED]))
    return {
        "all of them to v2, cold, ms CPU": 1000 * min(cold),
        "after one group-version changed, ms CPU": 1000 * min(warm),
        "memory of its process after it, MB": (after - before) / 1e6,
    }


def cpu(bodies: dict[GroupVersion, bytes], *, hash: str, changed: str, brought: list[GroupVersion]) -> float:
    keys = {
        each: DocumentKey(BackendName("a"), each, Hash(changed if each == CHANGED else hash))
        for each in sorted(bodies)
    }
    documents = [(keys[each], bodies[each]) for each in brought]
    started = time.process_time()
    made = merge_swagger(
        [*keys.values()], documents, media_type=JSON, coding=Coding.IDENTITY, limits=DEFAULT_LIMITS
    )
    taken = time.process_time() - started
    assert hasattr(made, "body"), made
    return taken


def resident() -> int:
    match = re.search(r"^RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return 1024 * int(match[1]) if match else 0


def least(work: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return min(taken)


WITHOUT_PROFILES = (
    "from specmux_aggregator.http import negotiation; negotiation._PROFILES.clear();"
    "from specmux_aggregator.cli import main; main()"
)


def commands(rounds: int) -> None:
    bare = min([run(["explain", "--help"]) for _ in range(rounds)])
    print(f"{'specmux explain --help':<40} {1000 * bare:7.0f} ms CPU")
    words = ["serve", "--directory", str(DATA / "k8s-pairs" / "1.35" / "v3"), "--listen-port", "0"]
    servers = [Process(*words, program=(sys.executable, "-c", WITHOUT_PROFILES)), Process(*words)]
    try:
        urls = [f"http://127.0.0.1:{each.port}" for each in servers]
        for each in servers:
            each.until_ready()
        for media, used in fetching(urls[1], rounds).items():
            print(f"core's document fetched and parsed, {media:<9} {1000 * used:5.1f} ms CPU")
        explain_cold(urls, rounds)
    finally:
        for each in servers:
            each.kill()


def explain_cold(urls: list[str], rounds: int) -> None:
    """By turns: the machine is not the same for long."""
    taken: dict[str, list[float]] = {url: [] for url in urls}
    with tempfile.TemporaryDirectory() as home:
        for number in range(rounds + 1):
            for url, found in taken.items():
                folder = Path(home, f"{number}-{url.rpartition(':')[2]}")
                used = run(["explain", "pods.spec", "--server", url, "--cache-directory", folder])
                found += [used] if number else []  # the first makes the form
    whole, schemas = (1000 * min(each) for each in taken.values())
    print(
        f"{'specmux explain, cold':<40} {whole:7.0f} ms CPU of a server without profiles,"
        f" {schemas:.0f} with them: {schemas / whole:.2f}"
    )


def fetching(server: str, rounds: int) -> dict[str, float]:
    """What of a cold command the form of a document changes: to fetch, check, store and parse it."""
    taken: dict[str, list[float]] = {"json": [], "schemas": []}
    for number in range(rounds + 1):
        for media, found in taken.items():
            options = CacheOptions(directory=None)
            with SchemaCache(server, options, background=False) as cache:
                cache.paths()
                started = time.thread_time()
                parse(cache.schema("v1", media=media).body)
                found += [time.thread_time() - started] if number else []
    return {media: min(found) for media, found in taken.items()}


def run(words: list[Any]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "KUBECONFIG": "/dev/null"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as it is installed: modules are compiled once
    command = [str(SPECMUX), *map(str, words)]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr or done.stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
