"""Several kubeconfigs, proxies of the environment, and a pod's service account."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
import trustme
import yaml

from cache.access.kubeconfigs import EXEC, config, read, refusal
from deadline import DEADLINE
from fakes.cluster import FakeCluster
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.kubernetes.cluster_access import backend_of
from specmux_aggregator.kubernetes.cluster_backends import APISERVER
from specmux_aggregator.upstream.transport import BackendTransport
from specmux_cache.access import in_cluster, kubeconfig
from specmux_cache.access.server_access import Credentials, ServerTLS
from specmux_cache.access.urls import environment_proxy
from specmux_cache.errors import AccessError


def write(path: Path, content: Any) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return str(path)


def several(tmp_path: Path) -> str:
    """Two files that contradict each other, and one that does not exist."""
    one = {
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "first", "tokenFile": ""}}],
    }
    two = config(user={"token": "second"}, **{"certificate-authority": "ca.crt"})
    two["contexts"][0]["context"]["cluster"] = "other"
    files = [write(tmp_path / "a/one", one), str(tmp_path / "none"), write(tmp_path / "b/two", two)]
    return os.pathsep.join(["", *files])


def test_first_of_several_files_wins(tmp_path: Path) -> None:
    access = kubeconfig.read(None, {"KUBECONFIG": several(tmp_path)})
    assert access.credentials.token == "first"
    assert access.tls.ca_file == tmp_path / "b/ca.crt"
    assert access.namespace == "default"


def test_home_has_the_file_when_nothing_names_one(tmp_path: Path) -> None:
    write(tmp_path / ".kube/config", config())
    access = kubeconfig.read(None, {"HOME": str(tmp_path)})
    assert access.url == "https://10.0.0.1:6443"


def test_refused_when_no_file_of_the_list_exists(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="KUBECONFIG: not one of the files"):
        kubeconfig.read(None, {"KUBECONFIG": f"{tmp_path}/a:{tmp_path}/b"})


@pytest.mark.parametrize(
    ("environ", "url", "proxy"),
    [
        ({}, "https://10.0.0.1", None),
        ({"HTTPS_PROXY": "http://p:3128"}, "https://10.0.0.1", "http://p:3128"),
        ({"https_proxy": "p:3128"}, "https://10.0.0.1", "http://p:3128"),
        ({"HTTP_PROXY": "http://p:3128"}, "https://10.0.0.1", None),
        ({"HTTP_PROXY": "http://p:3128"}, "http://10.0.0.1", "http://p:3128"),
        ({"HTTPS_PROXY": "http://p:3128"}, "https://127.0.0.1", None),
        ({"HTTPS_PROXY": "http://p:3128"}, "https://[::1]:6443", None),
        ({"HTTPS_PROXY": "http://p:3128"}, "https://localhost:6443", None),
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "*"}, "https://10.0.0.1", None),
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "a, 10.0.0.0/8"}, "https://10.0.0.1", None),
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "10.0.0.0/33"}, "https://10.0.0.1", "http://p:3128"),
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "10.0.0.1"}, "https://10.0.0.1", None),
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "10.0.0.1:6443"}, "https://10.0.0.1:6443", None),
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "10.0.0.1:1"}, "https://10.0.0.1", "http://p:3128"),
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "fd00::/8"}, "https://[fd00::1]:6443", None),
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "fd00::1"}, "https://[fd00::1]:6443", None),
        ({"HTTPS_PROXY": "http://p:3128", "no_proxy": "Example.COM"}, "https://api.example.com", None),
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "example.com"}, "https://example.com", None),
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": ".example.com"}, "https://api.example.com:443", None),
        (
            {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": ".example.com"},
            "https://example.com",
            "http://p:3128",
        ),
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "le.com,,"}, "https://example.com", "http://p:3128"),
    ],
)
def test_proxy_of_the_environment(environ: Mapping[str, str], url: str, proxy: str | None) -> None:
    assert environment_proxy(url, environ) == proxy


def test_proxy_of_the_kubeconfig_goes_before_the_environment(tmp_path: Path) -> None:
    content = config(**{"proxy-url": "http://10.0.0.9:3128/"})
    environ = {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}
    assert read(tmp_path, content, **environ).proxy == "http://10.0.0.9:3128"
    assert read(tmp_path, config(), HTTPS_PROXY="http://p:1").proxy == "http://p:1"
    assert "HTTPS_PROXY: is a SOCKS" in refusal(tmp_path, config(), HTTPS_PROXY="socks5://p")


def service_account(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_text(f"{name}-content\n")
    return folder


@pytest.mark.parametrize(
    ("host", "url"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_pod_uses_its_service_account(host: str, url: str, tmp_path: Path) -> None:
    folder = service_account(tmp_path, "token", "ca.crt", "namespace")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
    access = in_cluster.read(environ, directory=folder)
    assert (access.context, access.namespace) == ("in-cluster", "namespace-content")
    assert access.url == url
    assert access.tls == ServerTLS(ca_file=folder / "ca.crt")
    assert access.credentials == Credentials(token_file=folder / "token")


def test_pod_goes_through_the_proxy_of_its_environment(tmp_path: Path) -> None:
    folder = service_account(tmp_path, "token")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    proxied = {**environ, "HTTPS_PROXY": "http://p:3128"}
    assert in_cluster.read(proxied, directory=folder).proxy == "http://p:3128"
    direct = {**proxied, "NO_PROXY": "10.0.0.0/8"}
    access = in_cluster.read(direct, directory=folder)
    assert access.proxy is None
    assert access.tls == ServerTLS(), "without a CA of its own, the system's count"
    assert access.namespace == "default"


@pytest.mark.parametrize(
    ("environ", "names", "said"),
    [
        ({}, ["token"], "not inside a cluster"),
        ({"KUBERNETES_SERVICE_HOST": "h"}, ["token"], "not inside a cluster"),
        ({"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "x"}, ["token"], "not a URL"),
        ({"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}, ["ca.crt"], "no service account"),
    ],
)
def test_refused_outside_a_cluster(
    environ: dict[str, str], names: list[str], said: str, tmp_path: Path
) -> None:
    folder = service_account(tmp_path, *names)
    with pytest.raises(AccessError, match=said):
        in_cluster.read(environ, directory=folder)


needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl here")


async def kubectl(*arguments: str, folder: Path, **environ: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        "kubectl",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environ},
    )
    async with asyncio.timeout(DEADLINE):
        output, _ = await process.communicate()
    return output


@needs_kubectl
def test_several_files_mean_what_they_mean_to_kubectl(tmp_path: Path) -> None:
    environ = {"KUBECONFIG": several(tmp_path)}
    view = ("config", "view", "--minify", "--raw", "-o", "json")
    theirs = orjson.loads(asyncio.run(kubectl(*view, folder=tmp_path, **environ)))
    ours = kubeconfig.read(None, environ)
    assert theirs["current-context"] == ours.context
    assert theirs["users"][0]["user"]["token"] == ours.credentials.token
    assert theirs["clusters"][0]["cluster"]["server"] == ours.url


SHOWN = ("authorization", "impersonate-")


@needs_kubectl
@pytest.mark.parametrize(
    "user",
    [
        {},
        {"token": "inline"},
        {"token": "inline", "tokenFile": "token"},
        {"username": "jane", "password": "p:w ä"},
        {"token": "t", "as": "jane", "as-uid": "7", "as-groups": ["dev", "ops"],
         "as-user-extra": {"Scopes": ["a", "b"], "acme.com/x y": ["c"], "per%cent": ["d"]}},
        {"exec": {**EXEC, "command": "./plugin", "args": ["from-plugin"]}},
        {"exec": {**EXEC, "command": "./plugin", "args": ["from-plugin"]}, "token": "inline"},
    ],
    ids=["nothing", "token", "token-file", "basic", "impersonation", "exec", "exec-and-token"],
)  # fmt: skip
def test_shown_is_what_kubectl_shows(user: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    plugin = tmp_path / "plugin"
    plugin.write_text(
        """#!/bin/sh
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
"status": {"token": "'$1'"}}'
"""
    )
    plugin.chmod(0o755)

    ca = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(tls)
    ca_data = base64.b64encode(ca.cert_pem.bytes()).decode()

    async def scenario() -> tuple[Any, Any]:
        # Over TLS: without, kubectl shows no credentials at all.
        async with FakeCluster(tls=tls) as cluster:
            cluster.pages["/version"] = b"{}"
            path = cluster.kubeconfig(tmp_path, cluster={"certificate-authority-data": ca_data}, **user)
            await kubectl("get", "--raw", "/version", f"--kubeconfig={path}", folder=tmp_path)
            transport = BackendTransport(
                backend_of(kubeconfig.read(path, {}), APISERVER), polling=PollingSettings(total_timeout=10)
            )
            async with transport.request("GET", "/version", fields={}) as response:
                assert response.status == 200
            await transport.close()
            theirs, *_, ours = cluster.header_fields
            return shown(theirs), shown(ours)

    def shown(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return sorted((name.lower(), value) for name, value in fields if name.lower().startswith(SHOWN))

    theirs, ours = asyncio.run(scenario())
    assert ours == theirs
    assert bool(theirs) == bool(user)
