"""Explain: the command beside kubectl, and what a tree, a text and a page cost.

    .venv/bin/python tests/benchmarks/bench_explain.py [--rounds 7]

Wall and processor time of one run of a command, medians; the pure parts as processor time. The service
answers from the documents of 1.35; "warm" is with the disk cache of the run before.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import shutil
import statistics
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
from figures import keep  # noqa: E402

from data.explained_documents import release  # noqa: E402
from running.service import directory, service  # noqa: E402
from shared_data import DATA  # noqa: E402
from specmux_aggregator.http.messages import Coding  # noqa: E402
from specmux_aggregator.reader.requests import DocumentOrigin, DocumentRequest, ReaderAnswer, SiteParts  # noqa: E402
from specmux_converters.resources import GroupVersionKind  # noqa: E402
from specmux_tools.explanation.text import plaintext  # noqa: E402
from specmux_tools.explanation.tree import FieldPlace, tree_of  # noqa: E402
from specmux_tools.kinds import DocumentSet  # noqa: E402
from specmux_tools.reader.state import ReaderState  # noqa: E402
from specmux_tools.web_ui.document_page import document_page  # noqa: E402
from specmux_tools.web_ui.tree import tree_html  # noqa: E402

SPECMUX = Path(sys.executable).with_name("specmux")
SUBJECT = "deployments.spec"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: wants the reference data")
        return
    pure(options.rounds)
    asyncio.run(commands(options.rounds))


def pure(rounds: int) -> None:
    documents = DocumentSet(release())
    pod = documents.find(GroupVersionKind("", "v1", "Pod"))
    assert pod is not None
    place = FieldPlace((), pod.schema)
    tree = tree_of(pod.document, place)
    shown = {
        "tree of Pod": lambda: tree_of(pod.document, place),
        "its HTML": lambda: tree_html(tree),
        "its text, recursive": lambda: plaintext(pod.document, pod.kind, (), recursive=True),
    }
    for name, work in shown.items():
        print(f"{name:<36} {1000 * cpu(work, rounds):7.1f} ms CPU")
    sizes = page_sizes(documents)
    print(f"kinds' pages, gzip: p90 {sizes[int(len(sizes) * 0.9)]:.0f} KB, largest {sizes[-1]:.0f} KB")


def page_sizes(documents: DocumentSet) -> list[float]:
    """KB of every kind's page, as a browser that takes gzip is sent it."""
    state = ReaderState()
    state.version = "all"
    for key, document in documents.documents.items():
        state.index.put(key, document, hash=key)
    sizes = []
    for found in documents:
        state.keep(found.group_version, orjson.dumps(found.document))
        key = found.group_version
        origin = DocumentOrigin(group_version=key, hash=key, owner="release", provenance="native")
        below = f"kind/{key}/{found.kind.kind}"
        asked = DocumentRequest(page="kind", below=below, origin=origin, name=found.kind.kind, entries=())
        page = document_page(SiteParts(is_logged=True), asked, Coding.GZIP, state, "all", ())
        assert isinstance(page, ReaderAnswer)
        sizes.append(len(page.body) / 1e3)
    return sorted(sizes)


def cpu(work: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return statistics.median(taken)


async def commands(rounds: int) -> None:
    folder = DATA / "k8s-pairs" / "1.35" / "v3"
    with tempfile.TemporaryDirectory() as home:
        async with service(directory("release", folder)) as client:
            await client.ready()
            server = ["--server", client.base, "--cache-directory", f"{home}/specmux"]
            manifest = Path(home, "deployment.yaml")
            manifest.write_text(DEPLOYMENT)
            shown = {
                "specmux explain, server, warm": [SPECMUX, "explain", SUBJECT, *server],
                "specmux explain, offline": [SPECMUX, "explain", SUBJECT, *server, "--offline"],
                "specmux explain, folder": [SPECMUX, "explain", SUBJECT, "--directory", folder],
                "specmux search, server, warm": [SPECMUX, "search", "spec", *server],
                "specmux validate, one file, warm": [SPECMUX, "validate", manifest, *server],
                "python with click alone": [sys.executable, "-c", "import click"],
            }
            kubectl = shutil.which("kubectl")
            if kubectl is not None:
                arguments = [f"--server={client.base}", f"--cache-dir={home}/kubectl", "explain", SUBJECT]
                shown["kubectl explain, warm"] = [Path(kubectl), *arguments]
            kept = {}
            taken: dict[str, list[tuple[float, float]]] = {name: [] for name in shown}
            for _ in range(rounds + 1):  # in turn, so that a busy machine is so for all
                for name, command in shown.items():
                    taken[name].append(await asyncio.to_thread(run, command))
            for name, times in taken.items():
                wall, used = (statistics.median(each[at] for each in times[1:]) for at in (0, 1))
                print(f"{name:<36} {1000 * wall:7.0f} ms, {1000 * used:5.0f} ms CPU")
                if "explain" in name:
                    kept[name] = (used,)
            keep("explain", kept)


def run(command: list[Any]) -> tuple[float, float]:
    """Seconds, and seconds of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    environment = {**os.environ, "KUBECONFIG": "/dev/null"}
    # As it is installed: modules are compiled once.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(list(map(str, command)), capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - started, used


if __name__ == "__main__":
    main()
