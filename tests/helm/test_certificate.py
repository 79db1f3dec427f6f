"""The self-signed certificate: good for our names, kept by upgrades, renewed when it has to be."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from deadline import DEADLINE
from running.helm_chart import CHART, NAMESPACE, Object, helm, of_kind, one, require_helm

require_helm()

DAY = 86400


class Cluster:
    """The little of an apiserver that Helm asks when a template looks a Secret up."""

    def __init__(self) -> None:
        self.secret: Object | None = None

    def answer(self, path: str) -> tuple[int, Any]:
        if path == "/api/v1":
            secrets = {"name": "secrets", "kind": "Secret", "namespaced": True, "verbs": ["get"]}
            return 200, {"kind": "APIResourceList", "groupVersion": "v1", "resources": [secrets]}
        if path == f"/api/v1/namespaces/{NAMESPACE}/secrets/release-specmux-tls" and self.secret is not None:
            return 200, self.secret
        return 404, {"kind": "Status", "apiVersion": "v1", "reason": "NotFound", "code": 404}


@contextmanager
def served(cluster: Cluster) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, value = cluster.answer(self.path.partition("?")[0])
            body = json.dumps(value).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: pytest's output is enough."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(DEADLINE)


Upgrade = Callable[..., Object]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def upgrade(cluster: Cluster, tmp_path: Path) -> Iterator[Upgrade]:
    """Renders the Secret as an upgrade of what the cluster has, and puts it there."""
    nothing = tmp_path / "kubeconfig"
    nothing.write_text("")
    with served(cluster) as url:

        def rendered(*arguments: str) -> Object:
            result = helm(
                "template", "release", str(CHART), f"--namespace={NAMESPACE}", "--dry-run=server",
                f"--kube-apiserver={url}", f"--kubeconfig={nothing}", "--show-only=templates/tls-secret.yaml",
                *arguments,
            )  # fmt: skip
            assert result.returncode == 0, result.stderr
            cluster.secret = yaml.safe_load(result.stdout)
            return dict(cluster.secret or {})

        yield rendered


def pem(secret: Object, key: str) -> bytes:
    return base64.b64decode(secret["data"][key])


def test_certificate_is_ours_and_good_for_our_names() -> None:
    secret = one("Secret", "default", "--set=tls.extraNames={api.example.org}")
    certificate = x509.load_pem_x509_certificate(pem(secret, "tls.crt"))
    authority = x509.load_pem_x509_certificate(pem(secret, "ca.crt"))
    certificate.verify_directly_issued_by(authority)
    key = load_pem_private_key(pem(secret, "tls.key"), None).public_key()
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert key.public_bytes(*form) == certificate.public_key().public_bytes(*form)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "release-specmux",
        f"release-specmux.{NAMESPACE}",
        f"release-specmux.{NAMESPACE}.svc",
        f"release-specmux.{NAMESPACE}.svc.cluster.local",
        "api.example.org",
    ]
    said = int(secret["metadata"]["annotations"]["specmux/ends-at"])
    assert abs(said - certificate.not_valid_after_utc.timestamp()) < 60
    assert secret["type"] == "kubernetes.io/tls"
    assert secret["data"].keys() == {"ca.crt", "tls.crt", "tls.key"}


def test_upgrade_keeps_it(upgrade: Upgrade) -> None:
    first = upgrade()
    assert upgrade() == first
    assert upgrade("--set=replicaCount=5") == first


def test_other_names_make_a_new_one(upgrade: Upgrade) -> None:
    first = upgrade()
    assert upgrade("--set=tls.extraNames={api.example.org}")["data"]["tls.crt"] != first["data"]["tls.crt"]


def test_its_last_days_make_a_new_one(upgrade: Upgrade, cluster: Cluster) -> None:
    first = upgrade()
    assert cluster.secret is not None
    cluster.secret["metadata"]["annotations"]["specmux/ends-at"] = str(int(time.time()) + 364 * DAY)
    second = upgrade()
    assert second["data"]["tls.crt"] != first["data"]["tls.crt"]
    assert int(second["metadata"]["annotations"]["specmux/ends-at"]) > time.time() + 3649 * DAY


def test_a_secret_that_says_nothing_of_itself_is_replaced(upgrade: Upgrade, cluster: Cluster) -> None:
    first = upgrade()
    assert cluster.secret is not None
    del cluster.secret["metadata"]["annotations"]
    assert upgrade()["data"]["tls.crt"] != first["data"]["tls.crt"]


def test_no_secret_is_made_for_a_certificate_from_elsewhere() -> None:
    for example in ("cert-manager", "cert-manager-self-signed", "existing-secret"):
        assert of_kind("Secret", example) == []
    (certificate,) = of_kind("Certificate", "cert-manager")
    assert certificate["spec"]["issuerRef"] == {"name": "cluster-ca", "kind": "ClusterIssuer"}
    assert of_kind("Issuer", "cert-manager") == []
    (own,) = of_kind("Certificate", "cert-manager-self-signed")
    assert own["spec"]["issuerRef"]["name"] == one("Issuer", "cert-manager-self-signed")["metadata"]["name"]
