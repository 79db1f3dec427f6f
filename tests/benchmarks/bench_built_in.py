"""Validators on a laptop: no network, no cluster, nothing configured.

    .venv/bin/python tests/benchmarks/bench_built_in.py

Prints the table of docs/comparison.md: for each task how many of its mistakes a tool names, and its exit
code. Each run has an empty home and a network without any interface (``unshare -rn``). The tools come from
their registries, in fixed versions; one that cannot be had is named.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

from deadline import DEADLINE  # noqa: E402
from running.schema_clients import CACHE, go_program, kubeconform, tried  # noqa: E402

SPECMUX = Path(sys.executable).with_name("specmux")
KUBECTL_VALIDATE = "sigs.k8s.io/kubectl-validate@v0.0.4"
KUBERNETES_VALIDATE = "kubernetes-validate==1.36.0"
OFFLINE = ("unshare", "-rn")

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replica: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: nginx, ports: [{containerPort: "80"}], imagePullPolice: Always}
"""
ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:web"}
rules: []
"""
REMOVED = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1beta3
kind: FlowSchema
metadata: {name: web}
spec: {priorityLevelConfiguration: {name: x}}
"""
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, maximum: 9}}}
"""
RESOURCE = """\
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 10, siez: 1}
"""


@dataclass(frozen=True, slots=True)
class Task:
    """Files, and what their mistakes are recognised by in an output; none: they are right."""

    files: Mapping[str, str]
    mistakes: tuple[str, ...] = ()


TASKS = {
    "a Deployment with three mistakes": Task(
        {"web.yaml": DEPLOYMENT}, (r"\breplica\b", "containerPort", "imagePullPolice")
    ),
    "a ClusterRole `system:web`, which is right": Task({"role.yaml": ROLE}),
    "a CustomResourceDefinition, which is right": Task({"crd.yaml": DEFINITION}),
    "it, and a resource with two mistakes": Task(
        {"crd.yaml": DEFINITION, "widget.yaml": RESOURCE}, ("less than or equal|maximum", "siez")
    ),
    "an API that was removed": Task({"flow.yaml": REMOVED}, (r"removed|no longer|no match|no kind",)),
}
SHOWN = "[bench_built_in.py](../tests/benchmarks/bench_built_in.py)"
NO_SOURCE = re.compile(r"failed downloading|failed to download|connection refused|network is unreachable")


def main() -> None:
    if subprocess.run([*OFFLINE, "true"], check=False, capture_output=True).returncode:
        print("skipped: wants unshare, and a kernel that lets users have networks")
        return
    tools = {
        "specmux validate": [SPECMUX, "validate"],
        "kubeconform 0.8.0": [kubeconform(), "-strict"],
        "kubectl-validate 0.0.4": [go_program(KUBECTL_VALIDATE)],
        "kubernetes-validate 1.36": [kubernetes_validate(), "--strict"],
        f"kubectl {kubectl_version()}": [kubectl(), "apply", "--dry-run=client", "-f"],
    }
    missing = [name for name, command in tools.items() if command[0] is None]
    tools = {name: command for name, command in tools.items() if name not in missing}
    print(f"| no network, no cluster | {' | '.join(tools)} | shown by |")
    print(f"|---|{'---|' * len(tools)}---|")
    for name, task in TASKS.items():
        print(
            f"| {name} | {' | '.join(outcome(command, task) for command in tools.values())} | {SHOWN} |",
            flush=True,
        )
    if missing:
        print(f"not measured, since it cannot be had here: {', '.join(missing)}")


def outcome(command: list[object], task: Task) -> str:
    """What a user gets."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in task.files.items():
            Path(folder, name).write_text(text)
        files = [each for name in task.files for each in ("-f", name)] if "-f" in command else [*task.files]
        done = subprocess.run(
            [*OFFLINE, *(str(each) for each in command if each != "-f"), *files],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache"},
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
    said = done.stdout + done.stderr
    if NO_SOURCE.search(said):
        return f"needs a network or a server, {done.returncode}"
    if not task.mistakes:
        return "passes" if done.returncode == 0 else f"refused, {done.returncode}"
    named = sum(re.search(mistake, said, re.IGNORECASE) is not None for mistake in task.mistakes)
    return f"{named} of {len(task.mistakes)}, {done.returncode}"


def kubernetes_validate() -> Path | None:
    """In an environment of its own."""
    folder = CACHE / "kubernetes-validate"
    program = folder / "bin" / "kubernetes-validate"
    if not program.exists():
        tried([sys.executable, "-m", "venv", str(folder)])
        tried([str(folder / "bin" / "pip"), "install", "--quiet", KUBERNETES_VALIDATE])
    return program if program.exists() else None


def kubectl() -> Path | None:
    found = shutil.which("kubectl")
    return None if found is None else Path(found)


def kubectl_version() -> str:
    program = kubectl()
    if program is None:
        return ""
    told = subprocess.run([program, "version", "--client"], capture_output=True, text=True, check=False)
    version = re.search(r"v(1\.\d+)", told.stdout)
    return "" if version is None else version[1]


if __name__ == "__main__":
    main()
