"""What the chart renders starts: command, configuration and certificate, as clients see them."""

from __future__ import annotations

import base64
import http.client
import re
import socket
import ssl
from pathlib import Path

from helm_chart import NAMESPACE, configuration, container, one, require_helm
from running_process import specmux

require_helm()

VALUES = (
    "--set=apiServiceDiscovery.enabled=false",
    "--set=config.auth.mode=none",
    "--set=config.listen.port=0",
    "--set=config.listen.address=127.0.0.1",
    "--set=config.backends[0].name=documents,config.backends[0].directory=/documents",
)


def mounted(pod: Path, text: str) -> str:
    """The text with every place that is mounted in the container moved below ``pod``."""
    places = ["/documents", *(item["mountPath"] for item in container()["volumeMounts"])]
    longest_first = "|".join(re.escape(place) for place in sorted(places, reverse=True))
    return re.sub(longest_first, lambda place: f"{pod}{place[0]}", text)


def answer(port: int, path: str, trust: ssl.SSLContext) -> tuple[int, bytes]:
    """What a client gets that verifies us under the name of the Service."""
    name = f"release-specmux.{NAMESPACE}.svc"
    with (
        socket.create_connection(("127.0.0.1", port), 10) as plain,
        trust.wrap_socket(plain, server_hostname=name) as connection,
    ):
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response.status, response.read()


def test_pod_serves_its_name_over_tls(tmp_path: Path) -> None:
    for folder in ("etc/specmux", "etc/specmux-tls", "var/cache/specmux", "documents"):
        (tmp_path / folder).mkdir(parents=True)
    for name, value in one("Secret", "default", *VALUES)["data"].items():
        (tmp_path / "etc/specmux-tls" / name).write_bytes(base64.b64decode(value))
    (tmp_path / "etc/specmux/specmux.yaml").write_text(mounted(tmp_path, configuration("default", *VALUES)))
    rendered = container("default", *VALUES)
    live, ready = (rendered[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe"))
    trust = ssl.create_default_context(cafile=str(tmp_path / "etc/specmux-tls/ca.crt"))
    with specmux(*(mounted(tmp_path, item) for item in rendered["args"])) as process:
        assert answer(process.port, live, trust) == (200, b"ok\n")
        process.until(lambda: answer(process.port, ready, trust)[0] == 200, "ready")
        assert any((tmp_path / "var/cache/specmux").iterdir())
