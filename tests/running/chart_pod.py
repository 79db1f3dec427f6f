"""A pod of the chart as a process: configuration, certificate and service account, in mounts of its own."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from running.helm_chart import NAMESPACE
from running.image import ImageRoot
from running.namespaces import require_own_mounts
from running.process import Process, specmux
from specmux_cache.access.in_cluster import SERVICE_ACCOUNT

CONFIG = "/etc/specmux"
CACHE = "/var/cache/specmux"
GROUP = 65532
NAME = f"release-specmux.{NAMESPACE}.svc"
"""Of the Service, and of its certificate."""

MOUNT = """
set -e
mount -t tmpfs -o mode=755 run /var/run
mkdir -p /var/run/secrets/kubernetes.io/serviceaccount
mount --bind "$1/serviceaccount" /var/run/secrets/kubernetes.io/serviceaccount
mount --bind "$1/hosts" /etc/hosts
shift
exec "$@"
"""
"""What a kubelet does that cannot be had by another path: the service account, and names of services."""


def below(folder: Path, places: Iterable[str], text: str) -> str:
    """The text with every place that is mounted in the container moved below ``folder``."""
    longest_first = "|".join(re.escape(place) for place in sorted(places, reverse=True))
    return re.sub(longest_first, lambda place: f"{folder}{place[0]}", text)


@dataclass(frozen=True, slots=True)
class Pod:
    """The files. ``account`` is what the kubelet mounts: its token can be exchanged."""

    folder: Path
    places: tuple[str, ...]
    """The mount paths of the container."""
    arguments: tuple[str, ...]
    apiserver_port: int
    image: ImageRoot | None = None
    """Where it runs; None: on this machine, with ``places`` moved below ``folder``."""

    @property
    def account(self) -> Path:
        return self.folder / "serviceaccount"

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.folder / "etc/specmux-tls/ca.crt"))

    def exchange_token(self, token: str) -> None:
        """As the kubelet does it: a new folder, to which one link is turned."""
        data = self.account / f"..{len(list(self.account.iterdir()))}"
        data.mkdir()
        (data / "token").write_text(token)
        (self.account / "..new").symlink_to(data.name)
        (self.account / "..new").rename(self.account / "..data")
        if not (self.account / "token").is_symlink():
            (self.account / "token").symlink_to("..data/token")
        if self.image is not None:
            self.hand_over(self.account)

    @contextmanager
    def started(self, **settings: str) -> Iterator[RunningPod]:
        """``settings``: beside the configuration, by the names of the environment."""
        environment = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.apiserver_port),
            # The first thing that differs from the pod: several of them share our addresses.
            "SPECMUX_LISTEN_ADDRESS": "127.0.0.1",
            "SPECMUX_LISTEN_PORT": "0",
            # Longer than any test waits for the end.
            "SPECMUX_LISTEN_SHUTDOWN_TIMEOUT": "600",
            **settings,
        }
        process = self._on_this_machine(environment) if self.image is None else self._in_image(environment)
        with process as running:
            yield RunningPod(self, running)

    def _on_this_machine(self, environment: dict[str, str]) -> AbstractContextManager[Process]:
        arguments = (below(self.folder, self.places, item) for item in self.arguments)
        under = (*require_own_mounts(), "sh", "-c", MOUNT, "pod", str(self.folder))
        return specmux(*arguments, under=under, **environment)

    def _in_image(self, environment: dict[str, str]) -> AbstractContextManager[Process]:
        assert self.image is not None
        # Not /tmp: the environment that was gathered for the tests may lie there, and nothing else needs it.
        places = (place for place in self.places if place not in (CONFIG, "/tmp"))
        mounts = {place: Path(f"{self.folder}{place}") for place in places}
        mounts |= {str(SERVICE_ACCOUNT): self.account, "/etc/hosts": self.folder / "hosts"}
        under = self.image.inside(config=Path(f"{self.folder}{CONFIG}"), mounts=mounts, variables=environment)
        return specmux(*self.arguments, under=under, program=("specmux",))

    def hand_over(self, folder: Path) -> None:
        """As the kubelet does it for a pod with fsGroup: root's, and the group's to read or to write to."""
        for path in (folder, *folder.rglob("*")):
            os.chown(path, 0, GROUP, follow_symlinks=False)
            if path.is_dir():
                path.chmod(0o2777 if str(path) == f"{self.folder}{CACHE}" else 0o755)
            elif not path.is_symlink():
                path.chmod(0o440 if path.suffix in (".key", ".crt") or path.name == "token" else 0o644)


@dataclass(frozen=True, slots=True)
class RunningPod:
    pod: Pod
    process: Process

    def get(self, target: str, token: str | None = None) -> tuple[int, bytes]:
        """What a client gets that verifies the pod under the name of the Service."""
        shown = "" if token is None else f"Authorization: Bearer {token}\r\n"
        return answer(self.process.port, target, self.pod.trust, shown)

    def json(self, target: str, token: str) -> Any:
        status, body = self.get(target, token)
        assert status == 200, (target, body)
        return json.loads(body)

    def until_ready(self) -> None:
        self.process.until(lambda: self.get("/readyz")[0] == 200, "ready")


def answer(port: int, path: str, trust: ssl.SSLContext, fields: str = "") -> tuple[int, bytes]:
    with (
        socket.create_connection(("127.0.0.1", port), 10) as plain,
        trust.wrap_socket(plain, server_hostname=NAME) as connection,
    ):
        head = f"GET {path} HTTP/1.1\r\nHost: {NAME}\r\n{fields}Connection: close\r\n\r\n"
        connection.sendall(head.encode())
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response.status, response.read()


def made(
    folder: Path,
    *,
    config: str,
    places: tuple[str, ...],
    secret: dict[str, bytes],
    arguments: tuple[str, ...],
    apiserver_port: int,
    image: ImageRoot | None = None,
    apiserver_ca: bytes,
    token: str,
    hosts: tuple[str, ...] = (),
) -> Pod:
    """The files of a pod below ``folder``."""
    for place in places:
        Path(f"{folder}{place}").mkdir(parents=True, exist_ok=True)
    text = below(folder, places, config) if image is None else config
    Path(f"{folder}{CONFIG}/specmux.yaml").write_text(text)
    for name, value in secret.items():
        (folder / "etc/specmux-tls" / name).write_bytes(value)
    (folder / "hosts").write_text("".join(f"127.0.0.1 {name}\n" for name in ("localhost", *hosts)))
    pod = Pod(folder, places, arguments, apiserver_port, image)
    pod.account.mkdir()
    (pod.account / "ca.crt").write_bytes(apiserver_ca)
    (pod.account / "namespace").write_text(NAMESPACE)
    pod.exchange_token(token)
    if image is not None:
        pod.hand_over(folder)
    return pod


def secret_data(secret: dict[str, Any]) -> dict[str, bytes]:
    return {name: base64.b64decode(value) for name, value in secret["data"].items()}
