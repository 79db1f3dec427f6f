"""A pod of the chart as a process: configuration, certificate and service account, in mounts of its own."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helm_chart import NAMESPACE
from namespaces import require_own_mounts
from running_process import Process, specmux

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


def below(folder: Path, places: list[str], text: str) -> str:
    """The text with every place that is mounted in the container moved below ``folder``."""
    longest_first = "|".join(re.escape(place) for place in sorted(places, reverse=True))
    return re.sub(longest_first, lambda place: f"{folder}{place[0]}", text)


@dataclass(frozen=True, slots=True)
class Pod:
    """The files. ``account`` is what the kubelet mounts: its token can be exchanged."""

    folder: Path
    arguments: tuple[str, ...]
    apiserver_port: int

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

    @contextmanager
    def started(self, **settings: str) -> Iterator[RunningPod]:
        """``settings``: beside the configuration, by the names of the environment."""
        under = (*require_own_mounts(), "sh", "-c", MOUNT, "pod", str(self.folder))
        environment = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.apiserver_port),
            # The one thing that differs from the pod: several of them share our addresses.
            "SPECMUX_LISTEN_ADDRESS": "127.0.0.1",
            "SPECMUX_LISTEN_PORT": "0",
            **settings,
        }
        with specmux(*self.arguments, under=under, **environment) as process:
            yield RunningPod(self, process)


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
    places: list[str],
    secret: dict[str, bytes],
    arguments: tuple[str, ...],
    apiserver_port: int,
    apiserver_ca: bytes,
    token: str,
    hosts: tuple[str, ...] = (),
) -> Pod:
    """The files of a pod below ``folder``; ``places``: the mount paths that are moved there."""
    for place in places:
        Path(f"{folder}{place}").mkdir(parents=True, exist_ok=True)
    (folder / "etc/specmux/specmux.yaml").write_text(below(folder, places, config))
    for name, value in secret.items():
        (folder / "etc/specmux-tls" / name).write_bytes(value)
    (folder / "hosts").write_text("".join(f"127.0.0.1 {name}\n" for name in ("localhost", *hosts)))
    pod = Pod(folder, tuple(below(folder, places, item) for item in arguments), apiserver_port)
    pod.account.mkdir()
    (pod.account / "ca.crt").write_bytes(apiserver_ca)
    (pod.account / "namespace").write_text(NAMESPACE)
    pod.exchange_token(token)
    return pod


def secret_data(secret: dict[str, Any]) -> dict[str, bytes]:
    return {name: base64.b64decode(value) for name, value in secret["data"].items()}
