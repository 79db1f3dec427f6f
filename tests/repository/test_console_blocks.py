"""Every command line of the documentation runs, in the place that its page assumes, with its exit code.

A cluster is a specmux over a folder of documents: it publishes what an apiserver does. What takes a network,
a container or a tool that is not on the machine is listed, or skipped with a count. What needs no shell runs
in the process of the test.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from click.testing import CliRunner

from deadline import DEADLINE
from running.process import Process, specmux, write_documents
from specmux_aggregator.cli import main
from specmux_converters import build, canonical

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))  # the README's: test_readme.py
TOOLS = ("specmux", "curl", "kubectl", "kubeconform", "check-jsonschema", "helm")
LINE = re.compile(rf"^(?:\$ )?((?:{'|'.join(TOOLS)}) .*)$", re.MULTILINE)
FOR_A_SHELL = re.compile(r"[|&;<>$`*?~]")
BLOCK = re.compile(r"^```(?:console|sh)?\n(.*?)^```", re.MULTILINE | re.DOTALL)

ELSEWHERE = {
    "--in-cluster": "in a pod: tests/integration/test_in_cluster.py",
    "cache fetch": "the network: tests/tools/sources/test_published_documents.py",
    "helm template": "a chart: tests/tools/commands/test_hook.py",
}
"""Words of lines that are run by another test."""
ENDLESS = {"specmux serve": "listening on|serving|up", "curl -sN": ": |data:|event:"}
"""Beginnings of lines that run until they are interrupted, with what they print before."""
EXITS = {
    "specmux diff openapi-1.30/ openapi-1.32/": 1,
    "specmux validate deploy.yaml": 1,
    "specmux validate --directory schemas/ deploy.yaml": 1,
    "specmux validate --directory schemas/ --old git:main:manifests manifests/": 1,
    "specmux check-config specmux.yaml --probe": 0,
    "specmux validate manifests/ --release 1.36": 1,
    "specmux upgrade --to 1.37 manifests/": 1,
    "specmux upgrade --from 1.32 --to 1.35 manifests/": 5,
    "specmux diff kubernetes:1.34 kubernetes:1.37": 1,
}
"""Lines that show what fails."""


def definition(
    group: str, version: str, kind: str, plural: str, schema: dict[str, Any], **names: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": plural,
                "singular": kind.lower(),
                "kind": kind,
                "listKind": f"{kind}List",
                **names,
            },
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


def spec(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
POD = {
    "type": "object",
    "properties": {
        "restartPolicy": {"type": "string", "description": "Restart policy for all containers."},
        "containers": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": TEXT, "image": TEXT}},
        },
    },
}
TEMPLATE = {"type": "object", "properties": {"spec": POD}}
BOX = spec(
    size={
        "type": "integer",
        "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "may only grow"}],
    }
)
DEFINITIONS = [
    definition(
        "apps", "v1", "Deployment", "deployments",
        spec(replicas=NUMBER, template=TEMPLATE, strategy={"type": "object", "properties": {"type": TEXT}}),
        shortNames=["deploy"],
    ),
    definition(
        "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", spec(maxReplicas=NUMBER)
    ),
    definition("batch", "v1", "CronJob", "cronjobs", spec(schedule=TEXT, jobTemplate=TEMPLATE)),
    definition("acme.cert-manager.io", "v1", "Order", "orders", spec(url=TEXT)),
    definition("example.com", "v1", "Widget", "widgets", spec(size=NUMBER)),
    definition("example.com", "v1", "Box", "boxes", BOX),
    definition("orchard.example.org", "v1", "Tree", "trees", spec(variety=TEXT)),
]  # fmt: skip
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicaz: 3
  template:
    spec:
      containers: [{name: a, image: b, image: c}]
"""


def lines() -> Iterator[Any]:
    for page in PAGES:
        text = "".join(BLOCK.findall(page.read_text(encoding="utf-8")))
        found = [line.strip() for line in LINE.findall(text)]
        if found:
            yield pytest.param(found, id=page.stem)


def published(definitions: list[dict[str, Any]]) -> dict[str, bytes]:
    return {key: canonical(document) for key, document in build(definitions).documents.items()}


def box(size: int) -> str:
    head = "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a, namespace: shop}\n"
    return f"{head}spec:\n  size: {size}\n"


def furnish(here: Path) -> None:
    """What pages take for granted in the folder that their reader is in."""
    for name in ("documents", "schemas", "openapi-1.35", "openapi-1.30"):
        write_documents(here / name, published(DEFINITIONS))
    write_documents(here / "openapi-1.32", published(DEFINITIONS[1:]))
    (here / "crds").mkdir()
    (here / "crds" / "widgets.yaml").write_text(yaml.safe_dump_all(DEFINITIONS[4:6]))
    (here / "swagger.json").write_text(
        '{"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}}'
    )
    whole = {"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {}}
    (here / "openapi.yaml").write_text(yaml.safe_dump(whole))
    (here / "document.yaml").write_text(yaml.safe_dump(whole))
    (here / "deploy.yaml").write_text(DEPLOYMENT)
    (here / "scale.yaml").write_text("spec: {replicaz: 3}\n")
    (here / "deployment.yaml").write_text(
        DEPLOYMENT.replace("replicaz", "replicas").replace(", image: c", "")
    )
    manifests = here / "manifests"
    manifests.mkdir()
    (manifests / "box.yaml").write_text(box(2))
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["add", "manifests"],
        ["commit", "-q", "-m", "manifests"],
    ):
        subprocess.run([*git, *arguments], cwd=here, check=True, timeout=DEADLINE)
    (manifests / "box.yaml").write_text(box(1))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of what stands for the reader's cluster, and for the service at port 8080."""
    folder = tmp_path_factory.mktemp("cluster")
    write_documents(folder, published(DEFINITIONS))
    arguments = ("serve", "--directory", str(folder), "--listen-port", "0", "--validation-enabled")
    with specmux(*arguments) as process:
        process.until_ready()
        yield f"http://127.0.0.1:{process.port}"


def kubeconfig(url: str) -> dict[str, Any]:
    names = ("prod", "old", "new")
    return {
        "current-context": "prod",
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in names],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
    }


@pytest.mark.parametrize("commands", list(lines()))
def test_command_lines_run(commands: list[str], cluster: str, tmp_path: Path) -> None:
    home, here, programs = (tmp_path / name for name in ("home", "here", "bin"))
    for folder in (home / ".kube", here, programs):
        folder.mkdir(parents=True)
    (home / ".kube" / "config").write_text(json.dumps(kubeconfig(cluster)))
    shim = programs / "specmux"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m specmux_aggregator.cli "$@"\n')
    shim.chmod(0o755)
    furnish(here)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPECMUX_", "KUBE"))
    }
    environment |= {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    ran = 0
    for line in commands:
        if (
            any(word in line for word in ELSEWHERE)
            or shutil.which(line.split()[0], path=environment["PATH"]) is None
        ):
            continue
        run_line(line, cluster, here, environment)
        ran += 1
    if not ran:
        pytest.skip(f"{len(commands)} lines of tools that are not on this machine")


def run_line(line: str, url: str, here: Path, environment: dict[str, str]) -> None:
    command = line.replace("http://127.0.0.1:8080", url).replace("https://10.0.0.1:6443", url)
    if line == "specmux status":  # of the default port
        command = f"{command} {url}"
    endless = next((shown for start, shown in ENDLESS.items() if line.startswith(start)), None)
    if endless is not None:
        command = re.sub(r"(specmux serve\b[^#]*)", r"\1 --listen-port 0 ", command)
        process = Process(
            program=("bash", "-c", f"exec {command}"), under=("env", "-C", str(here)), **environment
        )
        try:
            process.until_printed(endless)
            if not line.startswith("curl"):  # how other programs end is not ours to test
                process.stop()
        finally:
            process.kill()
        return
    run = run_in_shell if FOR_A_SHELL.search(command) or not line.startswith("specmux") else run_in_process
    code, output = run(command, here, environment)
    expected = next((code for start, code in EXITS.items() if line.startswith(start)), 0)
    assert code == expected, (line, output[-2000:])


def run_in_shell(command: str, here: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE,
        check=False,
        cwd=here,
        env=environment,
    )
    return done.returncode, done.stdout


def run_in_process(command: str, here: Path, environment: dict[str, str]) -> tuple[int, str]:
    words = shlex.split(command, comments=True)[1:]
    with chdir(here), mock.patch.dict(os.environ, environment, clear=True):
        done = CliRunner().invoke(main, words, prog_name="specmux", catch_exceptions=False)
    return done.exit_code, done.output


def test_a_line_that_fails_is_noticed(cluster: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_line("specmux explain nosuch --directory .", cluster, tmp_path, dict(os.environ))


def test_there_are_lines() -> None:
    assert sum(len(each.values[0]) for each in lines()) >= 40
