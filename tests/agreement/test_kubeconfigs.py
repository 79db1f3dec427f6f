"""The service, the commands and the clients see one server and one refusal in a kubeconfig."""

from __future__ import annotations

import base64
import ssl
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from specmux_aggregator.config.settings import KubernetesSettings
from specmux_aggregator.errors import SpecmuxError
from specmux_aggregator.kubernetes.cluster_access import choose_access
from specmux_cache.access.presentation import read_access
from specmux_cache.errors import CacheError, KubeconfigError
from specmux_tools.sources.access import access_of
from specmux_tools.sources.options import SourceOptions

TOKEN = "{token: s3cret}"
HTTPS = "{server: 'https://k.example:6443'}"
V1 = "client.authentication.k8s.io/v1"


def text(cluster: str, user: str) -> str:
    return textwrap.dedent(f"""\
        apiVersion: v1
        kind: Config
        current-context: c
        contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
        clusters: [{{name: k, cluster: {cluster}}}]
        users: [{{name: u, user: {user}}}]
        """)


PLAIN = text(HTTPS, TOKEN)
CASES = {
    "token": (PLAIN, {}),
    "impersonation": (text(HTTPS, "{token: s3cret, as: jane, as-uid: '7'}"), {}),
    "one group": (text(HTTPS, "{token: s3cret, as: jane, as-groups: [dev]}"), {}),
    "several groups": (text(HTTPS, "{token: s3cret, as: jane, as-groups: [dev, ops]}"), {}),
    "groups without a user": (text(HTTPS, "{token: s3cret, as-groups: [dev]}"), {}),
    "token over http": (text("{server: 'http://k.example:8080'}", TOKEN), {}),
    "token over http to this machine": (text("{server: 'http://127.0.0.1:8080'}", TOKEN), {}),
    "HTTPS_PROXY": (PLAIN, {"HTTPS_PROXY": "http://proxy:3128"}),
    "NO_PROXY": (PLAIN, {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".example"}),
    "SOCKS in the environment": (PLAIN, {"HTTPS_PROXY": "socks5://proxy:1080"}),
    "no scheme": (text("{server: 'k.example:6443', insecure-skip-tls-verify: true}", TOKEN), {}),
    "insecure beside a CA": (
        text(
            "{server: 'https://k.example:6443', insecure-skip-tls-verify: true,"
            " certificate-authority-data: QUJD}",
            TOKEN,
        ),
        {},
    ),
    "certificate without its key": (text(HTTPS, "{client-certificate-data: QUJD, token: s3cret}"), {}),
    "line break in a token": (text(HTTPS, '{token: "s3cret\\nX-Evil: 1"}'), {}),
    "proxy-url": (text("{server: 'https://k.example:6443', proxy-url: 'http://p:1'}", TOKEN), {}),
    "SOCKS": (text("{server: 'https://k.example:6443', proxy-url: 'socks5://p:1080'}", TOKEN), {}),
    "a context whose name is a number": (
        PLAIN.replace("current-context: c", "current-context: 0644").replace("name: c,", "name: '0644',"),
        {},
    ),
    "auth-provider": (text(HTTPS, "{auth-provider: {name: gcp}}"), {}),
    "a program that asks": (
        text(HTTPS, f"{{exec: {{apiVersion: {V1}, command: /bin/false, interactiveMode: Always}}}}"),
        {},
    ),
    "a program of an unknown version": (
        text(HTTPS, "{exec: {apiVersion: client.authentication.k8s.io/v9, command: /bin/echo}}"),
        {},
    ),
    "a password and a token": (text(HTTPS, "{token: s3cret, username: joe, password: pw}"), {}),
    "a password": (text(HTTPS, "{username: joe, password: pw}"), {}),
    "no user": (PLAIN.replace(", user: u", ""), {}),
    "no cluster": (PLAIN.replace("cluster: k, ", ""), {}),
    "an unknown cluster": (PLAIN.replace("cluster: k,", "cluster: z,"), {}),
    "no server": (text("{}", TOKEN), {}),
    "a server with a password": (text("{server: 'https://me:pw@k.example'}", TOKEN), {}),
    "server name": (text("{server: 'https://k.example', tls-server-name: other}", TOKEN), {}),
    "no context": (PLAIN.replace("current-context: c\n", ""), {}),
    "a list": ("- a\n", {}),
    "no YAML": ("a: [", {}),
    "empty": ("", {}),
}


def shown(url: str, headers: object, tls: ssl.SSLContext | None, proxy: object, name: object) -> str:
    verified = "none" if tls is None else tls.verify_mode.name
    return f"{url} {headers} proxy={proxy} tls={verified} name={name}"


def by_client(path: Path, environ: dict[str, str]) -> str:
    found = read_access(path, context=None, environ=environ)
    return shown(found.url, dict(found.headers), found.tls, found.proxy, found.server_name)


def by_command(path: Path, environ: dict[str, str]) -> str:
    found = access_of(SourceOptions(kubeconfig=path), environ)
    return shown(found.url, dict(found.headers), found.tls, found.proxy, found.server_name)


def by_service(path: Path, environ: dict[str, str]) -> str:
    """What its configuration says; connections show what ``credentials`` and ``tls`` hold."""
    access = choose_access(KubernetesSettings(kubeconfig=path), environ)
    assert access is not None
    server = access.server
    headers = dict(server.credentials.impersonation)
    if len(headers) < len(server.credentials.impersonation):
        return "several groups"
    if server.credentials.token is not None:
        headers["Authorization"] = f"Bearer {server.credentials.token}"
    if server.credentials.basic is not None:
        pair = ":".join(server.credentials.basic).encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    verified = "none" if server.url.startswith("http:") else "CERT_REQUIRED"
    verified = "CERT_NONE" if server.tls.insecure_skip_verify else verified
    headers = dict(sorted(headers.items()))
    return f"{server.url} {headers} proxy={server.proxy_url} tls={verified} name={server.tls.server_name}"


def answer(door: Callable[[Path, dict[str, str]], str], path: Path, environ: dict[str, str]) -> str:
    try:
        return door(path, environ)
    except (CacheError, SpecmuxError) as error:
        assert "s3cret" not in str(error)
        return "refused"


@pytest.mark.parametrize("name", CASES)
def test_every_reader_of_a_kubeconfig_gives_one_answer(tmp_path: Path, name: str) -> None:
    content, environ = CASES[name]
    path = tmp_path / "config"
    path.write_text(content)
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **environ}
    client, command = (answer(door, path, environ) for door in (by_client, by_command))
    service = answer(by_service, path, environ)
    assert client == command
    if service == "several groups":  # a mapping of header fields cannot hold what the service can send
        assert client == "refused"
    else:
        head, brace, rest = client.partition("{")
        fields, end, tail = rest.partition("}")
        ordered = ", ".join(sorted(filter(None, fields.split(", "))))
        assert f"{head}{brace}{ordered}{end}{tail}" == service


def test_the_library_raises_its_own_errors(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(text(HTTPS, "{tokenFile: gone}"))
    with pytest.raises(KubeconfigError, match="gone: No such file"):
        read_access(path, context=None, environ={})
