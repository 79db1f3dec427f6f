"""What validating manifests costs, beside kubeconform and kubectl-validate.

    .venv/bin/python tests/benchmarks/bench_validation.py [--manifests 5000] [--rounds 3]

CPU time (user and system) of whole processes per manifest, medians; the start of each program on one manifest
is taken off. Manifests are YAML, of 40 kinds of Kubernetes 1.35, a hundred to a file. The peers are built
once, from Go modules, into ~/.cache/specmux-peers; kubeconform reads our own JSON Schemas,
kubectl-validate those of 1.30 that it brings. One process each.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import yaml

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

from figures import IS_MADE, keep  # noqa: E402
from made_documents import made_object  # noqa: E402

from shared_data import DATA, GOLDEN, documents, load, read  # noqa: E402
from specmux_converters.group_versions import GroupVersion  # noqa: E402
from specmux_schemas.kinds import DocumentSet  # noqa: E402
from specmux_schemas.validation import Validator  # noqa: E402

PEERS = Path.home() / ".cache" / "specmux-peers"
MODULES = {
    "kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0",
    "kubectl-validate": "sigs.k8s.io/kubectl-validate@v0.0.4",
}
KINDS = 40
SPECMUX = [str(Path(sys.executable).with_name("specmux"))]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--manifests", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    report_library()
    kept = {}
    for title, manifests in (
        (f"{KINDS} kinds, small", objects(options.manifests)),
        ("Deployments", [deployment()] * (options.manifests // 10)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            each = report_commands(Path(folder), title, manifests, options.rounds)
            kept[title] = (each.get(name) for name in ("specmux validate", *MODULES))
    keep("validation", kept)


def report_library() -> None:
    """One call on a body of 3 KB, kinds compiled."""
    apps = GroupVersion("apis/apps/v1")
    validator = Validator(DocumentSet({apps: load(documents("1.35")[apps])}))
    body = orjson.dumps(deployment())
    for form, data, rounds in (("JSON", body, 2000), ("YAML", yaml.safe_dump(deployment()).encode(), 300)):
        media_type = f"application/{form.lower()}"
        assert validator.validate(data, media_type).is_valid
        start = time.process_time()
        for _ in range(rounds):
            validator.validate(data, media_type)
        taken = (time.process_time() - start) / rounds
        print(f"library, a Deployment of {len(data)} bytes of {form}: {taken * 1e3:.2f} ms")


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
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
