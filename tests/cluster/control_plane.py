"""A real control plane on loopback: etcd, kube-apiserver with RBAC and without anonymous users, and the
sample apiserver behind an APIService. Started in seconds, and mistreated as a test wants."""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import subprocess
import time
from base64 import b64encode
from pathlib import Path
from typing import Any, Final, Self

import trustme
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from cluster.binaries import Binaries
from cluster.objects import AUDIT_POLICY, objects
from running.ports import free_port

STARTS = 90.0
"""Seconds in which a server answers."""

TIMEOUT: Final = 300
"""Seconds for one kubectl. A hundred definitions at once take a busy machine minutes, and one that is deleted
right after a restart waits for the apiserver's finalizer."""


class ControlPlane:
    """One cluster below ``folder``. ``with`` starts everything but the sample apiserver, and ends it all."""

    def __init__(self, binaries: Binaries, folder: Path) -> None:
        self.binaries = binaries
        self.folder = folder
        self.etcd_port, self.etcd_peer, self.port, self.wardle_port = free_ports(4)
        self.url = f"https://127.0.0.1:{self.port}"
        self.audit_log = folder / "audit.log"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._wardle_ca = b""

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._certificates()
        try:
            self.start_etcd()
            self.start_apiserver()
            self.apply(objects(self.wardle_port, b64encode(self._wardle_ca).decode()))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in ("wardle", "metrics-server", "first", "second", "apiserver", "etcd"):
            self.stop(name, signal.SIGKILL)

    # Servers

    def start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, self.etcd_peer))
        self.launch(
            "etcd",
            self.binaries.etcd,
            *("--name", "one", "--data-dir", str(self.folder / "etcd"), "--log-level", "warn"),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"one={peer}"),
        )

    def start_apiserver(self, *, until_ready: bool = True) -> None:
        self.launch("apiserver", self.binaries.apiserver, *self.apiserver_arguments(self.port))
        if until_ready:
            self.until_ready()

    def apiserver_arguments(self, port: int) -> list[str]:
        file = self.folder.joinpath
        headers = "--requestheader-"
        return [
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--authorization-mode=RBAC",
            "--anonymous-auth=false",
            f"--tls-cert-file={file('apiserver.crt')}",
            f"--tls-private-key-file={file('apiserver.key')}",
            f"--client-ca-file={file('ca.crt')}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={file('sa.pub')}",
            f"--service-account-signing-key-file={file('sa.key')}",
            f"{headers}client-ca-file={file('front-proxy-ca.crt')}",
            f"{headers}allowed-names=front-proxy-client",
            f"{headers}username-headers=X-Remote-User",
            f"{headers}group-headers=X-Remote-Group",
            f"{headers}extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={file('front-proxy-client.crt')}",
            f"--proxy-client-key-file={file('front-proxy-client.key')}",
            f"--audit-policy-file={file('audit.yaml')}",
            f"--audit-log-path={self.audit_log}",
        ]

    def start_wardle(
        self, openapi: str = "v3", *, until_available: bool = True, program: Path | None = None
    ) -> None:
        """The sample apiserver, which publishes OpenAPI ``v3`` and v2, or ``v2`` alone. ``program``: another
        release."""
        self.stop("wardle")
        config = self.kubeconfig("wardle", token=self.token("wardle", "apiserver"))
        file = self.folder.joinpath
        self.launch(
            "wardle",
            program or self.binaries.wardle,
            *("--bind-address=127.0.0.1", f"--secure-port={self.wardle_port}"),
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            *(f"--{which}kubeconfig={config}" for which in ("", "authentication-", "authorization-")),
            *(f"--tls-cert-file={file('wardle.crt')}", f"--tls-private-key-file={file('wardle.key')}"),
            WARDLE_OPENAPI=openapi,
        )
        if until_available:
            names = [f"apiservice/{version}.wardle.example.com" for version in ("v1alpha1", "v1beta1")]
            self.kubectl("wait", "--for=condition=Available", "--timeout=90s", *names)

    def start_metrics_server(self, program: Path) -> int:
        """metrics-server with the certificate of the sample apiserver's authority; the port it is at."""
        (port,) = free_ports(1)
        config = self.kubeconfig("metrics", token=self.token("wardle", "apiserver"))
        file = self.folder.joinpath
        self.launch(
            "metrics-server",
            program,
            *("--bind-address=127.0.0.1", f"--secure-port={port}", "--kubelet-insecure-tls"),
            *(f"--{which}kubeconfig={config}" for which in ("", "authentication-", "authorization-")),
            *(f"--tls-cert-file={file('wardle.crt')}", f"--tls-private-key-file={file('wardle.key')}"),
        )
        return port

    def launch(self, name: str, program: Path, *arguments: str, **environment: str) -> None:
        if name in self._running and self._running[name].poll() is None:
            return
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [str(program), *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        process = self._running.pop(name, None)
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(number)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def kill(self, name: str) -> None:
        self.stop(name, signal.SIGKILL)

    # Asking

    def until_ready(self, port: int | None = None) -> None:
        deadline = time.monotonic() + STARTS
        while time.monotonic() < deadline:
            try:
                if self.get("/readyz", port=port)[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError(
            f"the apiserver is not ready: {(self.folder / 'apiserver.log').read_text()[-2000:]}"
        )

    def get(self, path: str, *, port: int | None = None, **fields: str) -> tuple[int, bytes]:
        """As the cluster's administrator, of the apiserver itself."""
        connection = self.connection(port)
        try:
            connection.request("GET", path, headers=fields)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def connection(self, port: int | None = None) -> http.client.HTTPSConnection:
        """With the administrator's certificate."""
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        context.load_cert_chain(self.folder / "admin.crt", self.folder / "admin.key")
        return http.client.HTTPSConnection("127.0.0.1", port or self.port, timeout=60, context=context)

    def json(self, path: str, **fields: str) -> Any:
        status, body = self.get(path, **fields)
        assert status == 200, (path, status, body[:300])
        return json.loads(body)

    def kubectl(self, *arguments: str, given: str = "") -> str:
        """As the administrator, of the apiserver itself."""
        command = [
            "kubectl",
            f"--kubeconfig={self.admin}",
            f"--cache-dir={self.folder / 'kubectl'}",
            *arguments,
        ]
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    def apply(self, manifests: str) -> None:
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=manifests)

    def token(self, namespace: str, account: str, *, seconds: int = 24 * 3600) -> str:
        return self.kubectl("-n", namespace, "create", "token", account, f"--duration={seconds}s").strip()

    # Files

    @property
    def admin(self) -> Path:
        files = {"client-certificate": "admin.crt", "client-key": "admin.key"}
        user = {key: str(self.folder / name) for key, name in files.items()}
        return self._write_kubeconfig("admin", user)

    def kubeconfig(self, name: str, *, token: str, server: str | None = None) -> Path:
        token_file = self.folder / f"{name}.token"
        token_file.write_text(token)
        return self._write_kubeconfig(name, {"tokenFile": str(token_file)}, server)

    def _write_kubeconfig(self, name: str, user: dict[str, str], server: str | None = None) -> Path:
        cluster = {"server": server or self.url, "certificate-authority": str(self.folder / "ca.crt")}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "real",
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": name}}],
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
        }
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(json.dumps(config))
        return path

    def _certificates(self) -> None:
        ca, front, wardle = (trustme.CA() for _ in range(3))
        for name, authority in (("ca", ca), ("front-proxy-ca", front), ("wardle-ca", wardle)):
            authority.cert_pem.write_to_path(self.folder / f"{name}.crt")
        self._wardle_ca = wardle.cert_pem.bytes()
        names = ("127.0.0.1", "10.0.0.1", "localhost", "kubernetes.default.svc")
        self._write_certificate("apiserver", ca.issue_cert(*names, common_name="kube-apiserver"))
        admin = ca.issue_cert("admin.test", common_name="admin", organization_name="system:masters")
        self._write_certificate("admin", admin)
        proxy = front.issue_cert("proxy.test", common_name="front-proxy-client")
        self._write_certificate("front-proxy-client", proxy)
        self._write_certificate("wardle", wardle.issue_cert("api.wardle.svc", "metrics.wardle.svc"))
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (self.folder / "sa.key").write_bytes(private)
        (self.folder / "sa.pub").write_bytes(public)
        (self.folder / "audit.yaml").write_text(AUDIT_POLICY)

    def _write_certificate(self, name: str, certificate: trustme.LeafCert) -> None:
        certificate.private_key_pem.write_to_path(self.folder / f"{name}.key")
        chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
        (self.folder / f"{name}.crt").write_bytes(chain)


def free_ports(count: int) -> list[int]:
    found: set[int] = set()
    while len(found) < count:
        found.add(free_port())
    return list(found)
