"""etcd, kube-apiserver and the sample apiserver of one release, built once from their Go modules.

They are kept by release below ``SPECMUX_CLUSTER_CACHE`` (``~/.cache/specmux-cluster``); a build takes minutes
and a start seconds. Kubernetes cannot be built as it is: its staging modules are required as v0.0.0 and
replaced by folders that no module zip has, so they are replaced by their releases here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

VERSION = os.environ.get("SPECMUX_CLUSTER_VERSION", "v1.34.4")
CACHE = Path(os.environ.get("SPECMUX_CLUSTER_CACHE", Path.home() / ".cache" / "specmux-cluster"))
SOURCES = Path(__file__).parent / "go"

LIMIT = 3600.0
"""Seconds for one step of a build, on a machine with one slow core."""

STAGING = re.compile(r"^\s*(k8s\.io/[a-z-]+) => \./staging", re.MULTILINE)
OLDEST = "v0.17.0"
METRICS_SERVER, METRICS_SERVER_VERSION = "sigs.k8s.io/metrics-server", "v0.8.0"
HELM, HELM_VERSION = "helm.sh/helm/v3", "v3.19.0"


class Unbuildable(Exception):
    """What cannot be built here, and why."""


class Binaries:
    """The programs of one release of Kubernetes, each built when it is first asked for."""

    def __init__(self, version: str = VERSION, cache: Path = CACHE) -> None:
        self.version = version
        self._folder = cache / version
        self._module = self._folder / "module"

    @property
    def is_built(self) -> bool:
        """Whether a control plane can be started without a build."""
        return all((self._folder / "bin" / name).exists() for name in ("etcd", "kube-apiserver"))

    @property
    def apiserver(self) -> Path:
        return self._built(
            "kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", self._stamp(self.version)
        )

    @property
    def etcd(self) -> Path:
        return self._built("etcd", "go.etcd.io/etcd/server/v3")

    @property
    def wardle(self) -> Path:
        """With a version of its own, as every extension apiserver has."""
        return self._built("wardle", "./wardle", self._stamp(f"{self.version}-wardle"))

    @property
    def oldest_wardle(self) -> Path:
        """The sample apiserver of 1.17, the first release with a complete go.mod. Its replacements count in a
        main module alone, so its source is copied."""
        path = self._folder.parent / OLDEST / "bin" / "wardle"
        if not path.exists():
            told = self._go(
                "mod", "download", "-json", f"k8s.io/sample-apiserver@{OLDEST}", inside=self._folder
            )
            source = self._folder.parent / OLDEST / "source"
            shutil.copytree(
                json.loads(told)["Dir"], source, dirs_exist_ok=True, copy_function=shutil.copyfile
            )
            for each in (source, *source.rglob("*")):  # a module cache is read-only
                each.chmod(0o755 if each.is_dir() else 0o644)
            self._build(path, ".", "", inside=source)
        return path

    @property
    def metrics_server(self) -> Path:
        return self._program_of("metrics-server", METRICS_SERVER, METRICS_SERVER_VERSION)

    @property
    def helm(self) -> Path:
        return self._program_of("helm", HELM, HELM_VERSION)

    @property
    def informers(self) -> Path:
        """client-go of the same release."""
        return self._built("informers", "./informers")

    def _program_of(self, name: str, module: str, version: str) -> Path:
        """The command ``name`` of another project, in a module of its own."""
        path = self._folder / "bin" / name
        if not path.exists():
            folder = self._folder / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "go.mod").write_text(f"module specmux.example/{name}\n\ngo 1.24\n")
            (folder / "tools.go").write_text(
                f'//go:build tools\n\npackage tools\n\nimport _ "{module}/cmd/{name}"\n'
            )
            self._go("get", f"{module}@{version}", inside=folder)
            self._go("mod", "tidy", "-e", inside=folder)
            self._build(path, f"{module}/cmd/{name}", "", inside=folder)
        return path

    def _stamp(self, version: str) -> str:
        package = "k8s.io/component-base/version"
        values = {
            "gitVersion": version,
            "gitMajor": "1",
            "gitMinor": self.version.split(".")[1],
            "gitTreeState": "clean",
            "gitCommit": "0" * 40,
            "buildDate": "1970-01-01T00:00:00Z",
        }
        return " ".join(f"-X {package}.{name}={value}" for name, value in values.items())

    def _built(self, name: str, package: str, stamp: str = "") -> Path:
        path = self._folder / "bin" / name
        if not path.exists():
            self._resolve()
            self._build(path, package, stamp, inside=self._module)
        return path

    def _build(self, path: Path, package: str, stamp: str, *, inside: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        self._go(
            "build", "-trimpath", "-ldflags", f"-s -w {stamp}", "-o", str(partial), package, inside=inside
        )
        partial.rename(path)

    def _resolve(self) -> None:
        """A module that requires the release, with its staging modules as they were released."""
        self._module.mkdir(parents=True, exist_ok=True)
        told = self._go("mod", "download", "-json", f"k8s.io/kubernetes@{self.version}", inside=self._folder)
        upstream = Path(json.loads(told)["GoMod"]).read_text()
        staging = f"v0{self.version.removeprefix('v1')}"
        lines = [
            "module specmux.example/cluster",
            next(line for line in upstream.splitlines() if line.startswith("go ")),
            *(line for line in upstream.splitlines() if line.startswith("godebug ")),
            f"require k8s.io/kubernetes {self.version}",
            f"require k8s.io/sample-apiserver {staging}",
            *(f"replace {name} => {name} {staging}" for name in sorted(set(STAGING.findall(upstream)))),
        ]
        (self._module / "go.mod").write_text("\n".join(lines) + "\n")
        shutil.copytree(SOURCES, self._module, dirs_exist_ok=True)
        # With -e: packages of tests that are not needed cannot all be found.
        self._go("mod", "tidy", "-e", inside=self._module)

    def _go(self, *arguments: str, inside: Path) -> str:
        inside.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "GOTOOLCHAIN": "local",
            "GOFLAGS": f"-buildvcs=false -mod=mod -p={os.environ.get('PROCS', '2')}",
            "CGO_ENABLED": "0",
            # The checksum database that the module proxy passes on does not know this one.
            "GONOSUMDB": METRICS_SERVER,
        }
        done = subprocess.run(
            ["nice", "-n", "10", "go", *arguments],
            cwd=inside,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        if done.returncode:
            raise Unbuildable(f"go {' '.join(arguments[:2])}: {done.stderr[-2000:]}")
        return done.stdout


def obstacles() -> Iterator[str]:
    """Why nothing can be built or run here, in words."""
    for program in ("go", "kubectl"):
        if shutil.which(program) is None:
            yield f"{program} is not on this machine"
