"""What validating manifests costs, beside kubeconform and kubectl-validate.

    .venv/bin/python tests/benchmarks/bench_validation.py [--manifests 5000] [--rounds 3]

CPU time (user and system) of whole processes per manifest, medians; the start of each program on one manifest
is taken off. Manifests are YAML, of 40 kinds of Kubernetes 1.35, a hundred to a file. The peers are built
once, from Go modules, into ~/.cache/specmux-peers; kubeconform reads our own JSON Schemas,
kubectl-validate those of 1.30 that it brings. One process each.

Part http (``--part http``): 64 clients in a process of their own send Deployments to POST /openapi/validate;
told is how late the service's event loop is meanwhile, and how much of that is its own processor time, which
other programs of the machine do not change.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

from figures import IS_MADE, keep  # noqa: E402
from made_documents import made_object  # noqa: E402

from shared_data import DATA, GOLDEN, documents, load, read  # noqa: E402
from specmux_aggregator.app import App  # noqa: E402
from specmux_aggregator.config.settings import ListenSettings, Settings, ValidationSettings  # noqa: E402
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName  # noqa: E402
from specmux_converters.group_versions import GroupVersion  # noqa: E402
from specmux_tools.kinds import DocumentSet  # noqa: E402
from specmux_tools.validation import ValidationReport, Validator  # noqa: E402
from specmux_tools.validation.decoding.body import Body  # noqa: E402
from specmux_tools.validation.requests import BodyFormat, Operation  # noqa: E402

PEERS = Path.home() / ".cache" / "specmux-peers"
MODULES = {
    "kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0",
    "kubectl-validate": "sigs.k8s.io/kubectl-validate@v0.0.4",
}
KINDS = 40
SPECMUX = [str(Path(sys.executable).with_name("specmux"))]


MEASURE = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, _, usage = os.wait4(process.pid, 0)
process.returncode = 0
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""
"""Starts a command and waits for it. Linux counts the memory of who starts a process as that process's own
until it has begun its program: this one has little."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--manifests", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", choices=("all", "library", "commands", "http"), default="all")
    options = parser.parse_args()
    if options.part in ("all", "library"):
        report_library(options.rounds)
    if options.part in ("all", "http"):
        asyncio.run(report_http())
    if options.part in ("all", "commands"):
        report_peers(options)


def report_peers(options: argparse.Namespace) -> None:
    kept = {}
    for title, manifests in (
        (f"{KINDS} kinds, small", objects(options.manifests)),
        ("Deployments", [deployment()] * (options.manifests // 10)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            each = report_commands(Path(folder), title, manifests, options.rounds)
            kept[title] = (each.get(name) for name in ("specmux validate", *MODULES))
    keep("validation", kept)


def report_library(rounds: int) -> None:
    """One call on a body of 3 KB, kinds compiled: medians of the rounds."""
    apps = GroupVersion("apis/apps/v1")
    validator = Validator(DocumentSet({apps: load(documents("1.35")[apps])}))
    body = orjson.dumps(deployment())
    parsed = Body.receive(body, BodyFormat.JSON)
    text = yaml.safe_dump(deployment()).encode()
    calls: dict[str, Callable[[], ValidationReport]] = {
        f"{len(body)} bytes of JSON, parsed": lambda: validator.judge(parsed, Operation()),
        f"{len(body)} bytes of JSON": lambda: validator.validate(body),
        f"{len(text)} bytes of YAML": lambda: validator.validate(text, "application/yaml"),
    }
    for name, call in calls.items():
        assert call().is_valid
        taken = statistics.median(timed(call) for _ in range(max(rounds, 5)))
        print(f"library, a Deployment of {name}: {taken * 1e3:.3f} ms")


def timed(call: Callable[[], object], times: int = 300) -> float:
    start = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - start) / times


async def report_http(clients: int = 64, seconds: float = 10.0) -> None:
    """How late the loop is while nobody asks, and while ``clients`` do."""
    source = Backend(
        name=BackendName("kubernetes"), kind=BackendKind.DIRECTORY, directory=DATA / "k8s-pairs/1.35/v3"
    )
    settings = Settings(
        listen=ListenSettings(port=0),
        validation=ValidationSettings(enabled=True, max_in_flight=2 * clients),
        backends=(source,),
    )
    app = App(settings, None)
    host, port = await app.start()
    try:
        url = f"http://{host}:{port}/openapi/validate?fieldValidation=Strict"
        while not all(each.attempted for each in app.publisher.current.observations.values()):
            await asyncio.sleep(0.05)
        await asyncio.to_thread(asked, url, 1, 1.0)
        print(f"\nhttp, nobody asks: {await late(seconds / 2)}")
        pool = asyncio.create_task(asyncio.to_thread(asked, url, clients, seconds))
        await asyncio.sleep(1.5)  # their process starts
        print(f"http, {clients} clients: {await late(seconds - 2)}")
        codes = await pool
        print(f"http, answers by code: {codes}, {codes.get(200, 0) / seconds:.0f} valid objects a second")
    finally:
        await app.stop()


async def late(seconds: float) -> str:
    """Percentiles of how late a timer of 5 ms is, by the clock and by the loop's own processor time."""
    clock, own = [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before, used = time.monotonic(), time.thread_time()
        await asyncio.sleep(0.005)
        clock.append(max(0.0, time.monotonic() - before - 0.005))
        own.append(time.thread_time() - used)
    told = []
    for name, values in (("by the clock", clock), ("of its own processor time", own)):
        values.sort()
        at = [values[int(len(values) * share)] * 1e3 for share in (0.5, 0.99)]
        told.append(f"{name} p50 {at[0]:.2f} ms, p99 {at[1]:.2f} ms")
    return "; ".join(told)


def asked(url: str, clients: int, seconds: float) -> dict[int, int]:
    """How often which code was answered; of a process of their own."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=ask, args=(url, clients, seconds, answers))
    process.start()
    found: dict[int, int] = answers.get(timeout=seconds + 60)
    process.join(10)
    return found


def ask(url: str, clients: int, seconds: float, answers: Any) -> None:
    codes: dict[int, int] = {}

    async def client(session: aiohttp.ClientSession, body: bytes, end: float) -> None:
        while time.monotonic() < end:
            async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
                await answer.read()
                codes[answer.status] = codes.get(answer.status, 0) + 1

    async def together() -> None:
        body = orjson.dumps(deployment())
        end = time.monotonic() + seconds
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            await asyncio.gather(*(client(session, body, end) for _ in range(clients)))

    asyncio.run(together())
    answers.put(codes)


def deployment() -> dict[str, Any]:
    if IS_MADE:
        return made_object("apps", "v1", "Deployment")
    container = {
        "image": "nginx:1.25",
        "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}],
        "env": [{"name": f"VARIABLE_{number}", "value": "a value"} for number in range(6)],
        "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}, "requests": {"cpu": "100m"}},
        "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "initialDelaySeconds": 5},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": f"container-{number}", **container} for number in range(5)],
            "volumes": [{"name": "data", "configMap": {"name": "web"}}],
        },
    }
    labels = {f"app.kubernetes.io/label-{number}": "web" for number in range(8)}
    value = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": labels},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    copied: dict[str, Any] = orjson.loads(orjson.dumps(value))  # or YAML would have aliases
    return copied


def report_commands(
    folder: Path, title: str, manifests: list[dict[str, Any]], rounds: int
) -> dict[str, float]:
    """Milliseconds of a manifest by program."""
    count = len(manifests)
    texts = [yaml.safe_dump(each) for each in manifests]
    size = sum(map(len, texts)) / len(texts)
    many, one = folder / "many", folder / "one"
    many.mkdir()
    one.mkdir()
    for start in range(0, count, 100):
        (many / f"{start:05}.yaml").write_text("---\n".join(texts[start : start + 100]))
    (one / "one.yaml").write_text(texts[0])
    schemas = folder / "schemas"
    source = DATA / "k8s-pairs" / "1.35" / "v3"
    write_schemas = [*SPECMUX, "schemas", str(schemas), "--directory", str(source)]
    subprocess.run(write_schemas, check=True, capture_output=True)
    print(f"\n{count} manifests, {title}: {size:.0f} bytes each on the average")
    print(f"{'':18} {'ms each':>8} {'start, ms':>10} {'memory, MiB':>12}")
    found = {}
    for name, command in commands(source, schemas).items():
        runs = [measured([*command, str(many)]) for _ in range(rounds)]
        starts = [measured([*command, str(one)]) for _ in range(rounds)]
        start = statistics.median(seconds for seconds, _ in starts)
        total = statistics.median(seconds for seconds, _ in runs)
        memory = max(memory for _, memory in runs)
        each = (total - start) / (count - 1) * 1e3
        print(f"{name:18} {each:8.3f} {start * 1e3:10.0f} {memory:12.0f}")
        found[name] = each
    return found


def objects(count: int) -> list[dict[str, Any]]:
    """Those of the recorded ones that are valid, over and over, as many of each kind."""
    cases = [orjson.loads(line) for line in read(GOLDEN / "json-schema/verdicts-typed.jsonl.gz").splitlines()]
    by_kind: dict[str, list[dict[str, Any]]] = {"Deployment": [deployment()]}
    for case in cases:
        found = case["object"]
        if case["accept"] and not str(found.get("kind", "")).endswith("List"):
            by_kind.setdefault(found["kind"], []).append(found)
    kinds = sorted(by_kind, key=lambda kind: (kind != "Deployment", -len(by_kind[kind]), kind))[:KINDS]
    chosen = [by_kind[kind] for kind in kinds]
    most = len(chosen)
    return [chosen[n % most][n // most % len(chosen[n % most])] for n in range(count)]


def commands(source: Path, schemas: Path) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {
        "specmux validate": [*SPECMUX, "validate", "--workers", "1", "--directory", str(source)]
    }
    locations = str(schemas / "{{.NormalizedKubernetesVersion}}-standalone{{.StrictSuffix}}")
    location = f"{locations}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    kubeconform = peer("kubeconform")
    if kubeconform:
        found["kubeconform"] = [kubeconform, "-strict", "-n", "1", "-schema-location", location]
    kubectl_validate = None if IS_MADE else peer("kubectl-validate")
    if kubectl_validate:
        found["kubectl-validate"] = [kubectl_validate, "--version", "1.30"]
    return found


def peer(name: str) -> str | None:
    """Built from its module the first time; None, and a line, where it cannot be."""
    program = PEERS / name
    if not program.exists() and shutil.which("go"):
        environment = {**os.environ, "GOBIN": str(PEERS)}
        subprocess.run(["go", "install", MODULES[name]], env=environment, check=False, capture_output=True)
    if not program.exists():
        print(f"{name}: not there, and it could not be built")
        return None
    return str(program)


def measured(command: Sequence[str]) -> tuple[float, float]:
    """CPU seconds, and MiB at the most, of a process and its children."""
    alone = subprocess.run([sys.executable, "-c", MEASURE, *command], capture_output=True, check=True)
    seconds, kibibytes = alone.stdout.split()
    return float(seconds), float(kibibytes) / 1024


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
