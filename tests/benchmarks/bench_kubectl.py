"""kubectl explain and api-resources, against us and against the documents' own server.

    .venv/bin/python tests/benchmarks/bench_kubectl.py [--release 1.35] [--rounds 7] [--kubectl PATH]

Wall time of one run of kubectl, medians of the rounds, which take turns. "Own server" is an aiohttp
application that holds the same documents and lists in memory, already encoded, and answers what an apiserver
answers. "Cold" is with empty caches, "warm" with those of the run before.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

from figures import keep  # noqa: E402

from fakes.discovery import V2  # noqa: E402
from running.service import directory, service  # noqa: E402
from shared_data import DATA, documents, load  # noqa: E402
from specmux_tools.demo import serving, v3_application  # noqa: E402

COMMANDS = (("explain", "deployments", "--recursive"), ("api-resources",))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--release", default="1.35")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--kubectl", default=shutil.which("kubectl"))
    options = parser.parse_args()
    if options.kubectl is None or not DATA.is_dir():
        print("skipped: wants kubectl and the reference data")
        return
    asyncio.run(compare(options.release, options.rounds, options.kubectl))


async def compare(release: str, rounds: int, kubectl: str) -> None:
    folder = DATA / "k8s-pairs" / release / "v3"
    async with service(directory("release", folder)) as client:
        watch = client.app.discovery
        assert watch is not None
        await client.until(lambda: bool(watch.index.directory.versions()), "published")
        own = v3_application({key: load(path) for key, path in documents(release).items()})
        lists = {path: await client.get(path, Accept=V2) for path in ("/api", "/apis")}
        for path, (_, headers, body) in lists.items():
            own.router.add_get(path, answer(headers["ETag"], body))
        async with serving(own) as url:
            seconds: dict[tuple[str, str], list[float]] = {}
            for _ in range(rounds):
                for name, server in (("specmux", client.base), ("own server", url)):
                    for key, taken in (await measured(kubectl, server)).items():
                        seconds.setdefault((key, name), []).append(taken)
    for (what, name), taken in sorted(seconds.items()):
        print(f"{what:<42} {name:<11} {1000 * statistics.median(taken):7.0f} ms")
    medians = {key: 1000 * statistics.median(taken) for key, taken in seconds.items()}
    rows = {what: (medians[what, "specmux"], medians[what, "own server"]) for what, _ in sorted(medians)}
    keep("kubectl", rows)


def answer(etag: str, body: bytes) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers={"ETag": etag})
        return web.Response(body=body, headers={"Content-Type": V2, "ETag": etag, "Vary": "Accept"})

    return handle


async def measured(kubectl: str, server: str) -> dict[str, float]:
    """Seconds by command, cold and warm."""
    found = {}
    for command in COMMANDS:
        with tempfile.TemporaryDirectory() as home:
            for state in ("cold", "warm"):
                started = time.perf_counter()
                await asyncio.to_thread(
                    run, [kubectl, f"--server={server}", f"--cache-dir={home}", *command], home
                )
                found[f"{' '.join(command)}, {state}"] = time.perf_counter() - started
    return found


def run(command: list[str], home: str) -> None:
    environment = {**os.environ, "HOME": home, "KUBECONFIG": "/dev/null"}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=60)


if __name__ == "__main__":
    main()
