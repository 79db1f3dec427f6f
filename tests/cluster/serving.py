"""specmux in front of a control plane, as a process, with the rights of docs/kubernetes.md and no more."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster.control_plane import ControlPlane
from running.process import Process, specmux

WITHIN = 60.0
"""Seconds for anything to come true."""
STARTS = 300.0
"""Seconds until a service is ready: minutes, with hundreds of definitions on a busy machine."""


@contextmanager
def serving(
    plane: ControlPlane, folder: Path, *, server: str | None = None, **settings: dict[str, Any]
) -> Iterator[Process]:
    """A ready service. ``settings``: sections of its configuration; ``server``: the apiserver's URL."""
    folder.mkdir(parents=True, exist_ok=True)
    token = plane.token("specmux", "specmux")
    kubernetes = {
        "kubeconfig": str(plane.kubeconfig("specmux", token=token, server=server)),
        "service_url": "https://127.0.0.1:{port}",
        **settings.pop("kubernetes", {}),
    }
    listen = {"port": 0, **settings.pop("listen", {})}
    config = {"listen": listen, "kubernetes": kubernetes, **settings}
    path = folder / "config.yaml"
    path.write_text(json.dumps(config))
    with specmux("serve", "--config", str(path)) as process:
        if "tls_cert_file" in listen:
            _ask_over_tls(process, plane.folder / "ca.crt")
        until(lambda: _is_ready(process), "ready", STARTS)
        yield process


def _is_ready(process: Process) -> bool:
    try:
        return process.get("/readyz")[0] == 200
    except OSError:
        return False


def tls(plane: ControlPlane) -> dict[str, str]:
    """Settings of a listener with the certificate that kubectl knows: over plain HTTP it shows no token."""
    names = {"tls_cert_file": "apiserver.crt", "tls_key_file": "apiserver.key"}
    return {key: str(plane.folder / name) for key, name in names.items()}


def _ask_over_tls(process: Process, authority: Path) -> None:
    context = ssl.create_default_context(cafile=str(authority))

    def get(target: str, **fields: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPSConnection("127.0.0.1", process.port, timeout=30, context=context)
        try:
            connection.request("GET", target, headers=fields)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    process.get = get  # type: ignore[method-assign]


@contextmanager
def front_proxy(plane: ControlPlane) -> Iterator[dict[str, str]]:
    """Settings with which extension apiservers are shown what kube-aggregator shows them."""
    yield {
        "service_cert_file": str(plane.folder / "front-proxy-client.crt"),
        "service_key_file": str(plane.folder / "front-proxy-client.key"),
        "service_remote_user": "system:aggregator",
    }


def document(process: Process, key: str, **fields: str) -> tuple[int, dict[str, str], bytes]:
    """A document by its current hash, redirects followed as a client does."""
    target = process.paths()[key]
    for _ in range(5):
        status, headers, body = process.get(target, **fields)
        if status != 301:
            return status, headers, body
        target = "/openapi/v3/" + key + headers["Location"][headers["Location"].index("?") :]
    raise AssertionError(f"{key}: redirected in circles")


def discovered(process: Process) -> set[str]:
    """The group-versions that aggregated discovery lists."""
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    found: set[str] = set()
    for path, prefix in (("/api", "api/"), ("/apis", "apis/")):
        status, _, body = process.get(path, Accept=accept)
        assert status == 200, (path, status)
        for item in json.loads(body)["items"]:
            group = item["metadata"].get("name", "")
            base = prefix + (f"{group}/" if group else "")
            found |= {base + version["version"] for version in item["versions"]}
    return found


def until(is_so: Callable[[], Any], what: str, within: float = WITHIN) -> Any:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        found = is_so()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"never came true within {within:g} s: {what}")


class Looking:
    """Looks at the root and at discovery all the time, in a thread, and notes what was missing."""

    def __init__(self, process: Process, wanted: set[str]) -> None:
        self._process = process
        self._wanted = wanted
        self._listed = discovered(process)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.looks = 0
        self.missing: list[set[str]] = []
        self.failures: list[str] = []

    def __enter__(self) -> Looking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _look(self) -> None:
        while not self._stop.is_set():
            try:
                lacking = (
                    self._wanted - set(self._process.paths()),
                    self._listed - discovered(self._process),
                )
                self.missing += [each for each in lacking if each]
            except (OSError, AssertionError, ValueError, KeyError) as error:
                self.failures.append(f"{type(error).__name__}: {error}")
            self.looks += 1
            time.sleep(0.02)
