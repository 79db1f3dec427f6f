"""What a kubeconfig and a pod's service account say, as client-go takes it; kubectl is asked where it is."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import ssl
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import trustme
import yaml

from fakes.cluster import FakeCluster
from specmux_aggregator.config.settings import Polling
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.kubernetes import in_cluster, kubeconfig
from specmux_aggregator.kubernetes.access import Access, environment_proxy
from specmux_aggregator.model.backend import BackendName, BackendTLS, Credentials, ExecPlugin
from specmux_aggregator.upstream.transport import Transport

NAME = BackendName("kubernetes")
SECRET = "s3cret-value"
PEM = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
DATA = base64.b64encode(PEM).decode()


def config(*, user: Any = None, **cluster: Any) -> dict[str, Any]:
    cluster.setdefault("server", "https://10.0.0.1:6443")
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }


def read(folder: Path, content: Any, *, context: str | None = None, **environ: str) -> Access:
    path = folder / "config"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return kubeconfig.read(path, context=context, environ=environ, name=NAME)


def refusal(folder: Path, content: Any, **more: Any) -> str:
    with pytest.raises(InvalidConfig) as refused:
        read(folder, content, **more)
    return str(refused.value)


def credentials(folder: Path, **user: Any) -> Credentials:
    return read(folder, config(user=user)).server.credentials


def test_context_names_the_apiserver(tmp_path: Path) -> None:
    access = read(tmp_path, config(server="https://10.0.0.1:6443/base/", user={"token": "t"}))
    assert (access.context, access.namespace) == ("here", "ns")
    assert access.server.name == NAME
    assert access.server.url == "https://10.0.0.1:6443/base"
    assert access.server.credentials == Credentials(token="t")
    assert access.server.tls == BackendTLS()


def test_named_context_goes_before_the_current_one(tmp_path: Path) -> None:
    content = config()
    content["contexts"].append({"name": "there", "context": {"cluster": "d"}})
    content["clusters"].append({"name": "d", "cluster": {"server": "http://10.0.0.2"}})
    access = read(tmp_path, content, context="there")
    assert (access.context, access.namespace) == ("there", "default")
    assert access.server.url == "http://10.0.0.2"


def test_json_is_read_too(tmp_path: Path) -> None:
    text = orjson.dumps(config(user={"token": "t"}), option=orjson.OPT_INDENT_2).decode()
    assert read(tmp_path, text).server.credentials.token == "t"


def test_files_start_at_the_folder_of_the_file(tmp_path: Path) -> None:
    user = {"client-certificate": "pki/c.crt", "client-key": "/abs/c.key", "tokenFile": "../token"}
    server = read(tmp_path, config(user=user, **{"certificate-authority": "ca.crt"})).server
    assert server.tls == BackendTLS(
        ca_file=tmp_path / "ca.crt", cert_file=tmp_path / "pki/c.crt", key_file=Path("/abs/c.key")
    )
    assert server.credentials.token_file == tmp_path / "../token"


def test_data_goes_before_files(tmp_path: Path) -> None:
    user = {
        "client-certificate": "c.crt", "client-certificate-data": DATA,
        "client-key": "c.key", "client-key-data": DATA,
    }  # fmt: skip
    cluster = {"certificate-authority": "ca.crt", "certificate-authority-data": DATA}
    tls = read(tmp_path, config(user=user, **cluster)).server.tls
    assert tls == BackendTLS(ca_data=PEM, cert_data=PEM, key_data=PEM)


def test_one_half_of_a_pair_may_be_a_file(tmp_path: Path) -> None:
    user = {"client-certificate-data": DATA, "client-key": "c.key"}
    tls = read(tmp_path, config(user=user)).server.tls
    assert (tls.cert_data, tls.key_file) == (PEM, tmp_path / "c.key")


def test_tls_settings_of_the_cluster(tmp_path: Path) -> None:
    cluster = {"tls-server-name": "api.example", "insecure-skip-tls-verify": True}
    tls = read(tmp_path, config(**cluster)).server.tls
    assert tls == BackendTLS(server_name="api.example", insecure_skip_verify=True)


@pytest.mark.parametrize(
    ("cluster", "url"),
    [
        ({"server": "10.0.0.1:8080"}, "http://10.0.0.1:8080"),
        ({"server": "10.0.0.1:8080", "insecure-skip-tls-verify": True}, "https://10.0.0.1:8080"),
        ({"server": "https://[fd00::1]:6443"}, "https://[fd00::1]:6443"),
    ],
)
def test_server_may_lack_a_scheme(cluster: dict[str, Any], url: str, tmp_path: Path) -> None:
    assert read(tmp_path, config(**cluster)).server.url == url


def test_token_file_goes_before_the_token(tmp_path: Path) -> None:
    found = credentials(tmp_path, token=SECRET, tokenFile="token")
    assert found == Credentials(token_file=tmp_path / "token")


def test_user_name_and_password(tmp_path: Path) -> None:
    assert credentials(tmp_path, username="jane", password="p:w").basic == ("jane", "p:w")


@pytest.mark.parametrize(
    ("server", "is_kept"),
    [("http://10.0.0.1", False), ("http://127.0.0.1:1", True), ("https://10.0.0.1", True)],
)
def test_credentials_are_not_for_the_open_network(server: str, is_kept: bool, tmp_path: Path) -> None:
    user = {"token": "t", "as": "jane"}
    found = read(tmp_path, config(server=server, user=user)).server.credentials
    assert found.token == ("t" if is_kept else None)
    assert found.impersonation == (("Impersonate-User", "jane"),)


def test_user_may_be_absent(tmp_path: Path) -> None:
    content = config()
    del content["contexts"][0]["context"]["user"]
    assert read(tmp_path, content).server.credentials == Credentials()


def test_impersonation_makes_header_fields(tmp_path: Path) -> None:
    found = credentials(
        tmp_path,
        **{
            "as": "jane",
            "as-uid": "7",
            "as-groups": ["dev", "ops"],
            "as-user-extra": {"Scopes": ["a", "b"], "acme.com/x y": ["c"]},
        },
    )
    assert found.impersonation == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-scopes", "a"),
        ("Impersonate-Extra-scopes", "b"),
        ("Impersonate-Extra-acme.com%2Fx%20y", "c"),
    )


EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "plugin", "interactiveMode": "Never"}


def test_exec_plugin_is_read_whole(tmp_path: Path) -> None:
    plugin = {
        **EXEC,
        "command": "./bin/plugin",
        "args": ["get", "token"],
        "env": [{"name": "REGION", "value": "eu"}, {"name": "EMPTY"}],
        "installHint": "\x1b[31mget it\x1b[0m",
        "provideClusterInfo": True,
    }
    extension = {"audience": "x", "n": 3, "on": True, "none": None, "list": [1.5, "2"]}
    extensions = [
        {"name": "other", "extension": {"a": 1}},
        {"name": "client.authentication.k8s.io/exec", "extension": extension},
    ]
    found = read(tmp_path, config(user={"exec": plugin}, extensions=extensions)).server.credentials
    found_plugin = found.exec_plugin
    assert found_plugin is not None
    assert found_plugin.cluster_config is not None
    assert orjson.loads(found_plugin.cluster_config) == extension
    assert replace(found_plugin, cluster_config=None) == ExecPlugin(
        command=str(tmp_path / "bin/plugin"),
        args=("get", "token"),
        env=(("REGION", "eu"), ("EMPTY", "")),
        install_hint="get it",
        provide_cluster_info=True,
    )


def test_exec_plugin_without_a_slash_is_for_the_path(tmp_path: Path) -> None:
    found = credentials(tmp_path, exec={**EXEC, "args": None, "env": None})
    assert found.exec_plugin == ExecPlugin(command="plugin")


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"exec": {**EXEC, "interactiveMode": "Always"}}, "user.exec.interactiveMode: is Always"),
        ({"exec": {**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}}, "exec.apiVersion: wants"),
        ({"exec": {"apiVersion": EXEC["apiVersion"]}}, "users[u].user.exec: has no command"),
        ({"exec": {**EXEC, "env": [{"name": "A=B", "value": SECRET}]}}, "exec.env[0].name: is no name"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider: was removed from Kubernetes in 1.26"),
        ({"token": 12345678}, "user.token: wants a text, and YAML reads this as int"),
        ({"token": f"{SECRET}\r\nX: y"}, "user.token: holds no bearer token"),
        ({"token": SECRET, "username": "u"}, "user.username: stands beside a token"),
        ({"client-certificate-data": DATA}, "has a client-certificate without its other half"),
        ({"client-key": "c.key"}, "has a client-key without its other half"),
        ({"client-key-data": f"{SECRET}!", "client-certificate": "c"}, "client-key-data: is not base64"),
        ({"as-groups": ["dev"]}, "has as-uid, as-groups or as-user-extra without as"),
        ({"as": f"{SECRET}\nX: y"}, "user.as: holds a character that no header field can hold"),
        ({"as-groups": "dev", "as": "jane"}, "user.as-groups: wants a list"),
        ([SECRET], "users[u].user: wants a mapping"),
    ],
)
def test_user_is_refused_with_its_place_and_without_its_values(user: Any, said: str, tmp_path: Path) -> None:
    message = refusal(tmp_path, config(user=user))
    assert message.startswith(f"{tmp_path / 'config'}:")
    assert said in message
    assert SECRET not in message


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ({"server": f"https://jane:{SECRET}@10.0.0.1"}, "cluster.server: holds a user name or password"),
        ({"server": "ftp://10.0.0.1"}, "clusters[c].cluster.server: wants a URL"),
        ({"server": ""}, "clusters[c].cluster: names no server"),
        ({"server": None}, "clusters[c].cluster: names no server"),
        ({"proxy-url": f"socks5://{SECRET}@10.0.0.1:1080"}, "proxy-url: is a SOCKS proxy"),
        ({"proxy-url": f"http://10.0.0.1/{SECRET}"}, "proxy-url: holds more than scheme, host and port"),
        ({"certificate-authority-data": f"{SECRET}!"}, "certificate-authority-data: is not base64"),
        ({"insecure-skip-tls-verify": "yes please"}, "insecure-skip-tls-verify: wants true or false"),
        (
            {"insecure-skip-tls-verify": True, "certificate-authority": "ca.crt"},
            "insecure-skip-tls-verify: is set beside a certificate-authority",
        ),
    ],
)
def test_cluster_is_refused_with_its_place(cluster: dict[str, Any], said: str, tmp_path: Path) -> None:
    message = refusal(tmp_path, config(**cluster))
    assert said in message
    assert SECRET not in message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"current-context": "gone"}, 'there is no context "gone"; known: here'),
        ({"current-context": ""}, "there is no current-context; known: here"),
        ({"clusters": []}, 'there is no cluster "c"; there is none at all'),
        ({"users": None}, 'there is no user "u"; there is none at all'),
        ({"clusters": "x"}, ":2: clusters: wants a list"),
        ({"users": [{"name": "u"}, {"name": "u"}]}, "users[1].name: given twice"),
        ({"contexts": [{"name": "here", "context": {}}]}, 'the context "here" names no cluster'),
    ],
)
def test_file_is_refused_when_its_parts_do_not_fit(change: Any, said: str, tmp_path: Path) -> None:
    assert said in refusal(tmp_path, {**config(), **change})


@pytest.mark.parametrize("text", ["a: [", "- a", "a: b\n---\nc: d", "\x01", "a: " + "[" * 40])
def test_file_is_refused_when_it_is_something_else(text: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, text).startswith(str(tmp_path / "config"))


def test_file_is_refused_when_it_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="No such file"):
        kubeconfig.read(tmp_path / "none", environ={}, name=NAME)
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(InvalidConfig, match="not UTF-8"):
        kubeconfig.read(tmp_path / "bytes", environ={}, name=NAME)


def test_aliases_do_not_multiply_what_a_plugin_is_told(tmp_path: Path) -> None:
    levels = "".join(f"    a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
    text = f"""
current-context: here
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
users:
- name: u
  user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: x, provideClusterInfo: true}}}}
clusters:
- name: c
  cluster:
    server: https://10.0.0.1
    a0: &a0 [x]
{levels}    extensions: [{{name: client.authentication.k8s.io/exec, extension: *a8}}]
"""
    assert "holds more than" in refusal(tmp_path, text)


def test_unknown_keys_and_other_entries_are_left_alone(tmp_path: Path) -> None:
    content = config(user={"token": "t", "future": {"a": 1}}, disableCompression=True)
    content["users"].append({"name": "broken", "user": {"token": 5, "auth-provider": {}}})
    assert read(tmp_path, content).server.credentials.token == "t"


def test_secrets_are_in_no_repr(tmp_path: Path) -> None:
    user = {
        "token": SECRET, "client-key-data": base64.b64encode(SECRET.encode()).decode(),
        "client-certificate": "c",
        "exec": {**EXEC, "args": [SECRET], "env": [{"name": "A", "value": SECRET}]},
    }  # fmt: skip
    access = read(tmp_path, config(user=user, **{"proxy-url": f"http://jane:{SECRET}@10.0.0.9:3128"}))
    assert access.server.proxy_url == f"http://jane:{SECRET}@10.0.0.9:3128"
    basic = read(tmp_path, config(user={"username": "jane", "password": SECRET}))
    assert SECRET not in repr(access) + repr(basic)


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
    access = kubeconfig.read(None, environ={"KUBECONFIG": several(tmp_path)}, name=NAME)
    assert access.server.credentials.token == "first"
    assert access.server.tls.ca_file == tmp_path / "b/ca.crt"
    assert access.namespace == "default"


def test_home_has_the_file_when_nothing_names_one(tmp_path: Path) -> None:
    write(tmp_path / ".kube/config", config())
    access = kubeconfig.read(None, environ={"HOME": str(tmp_path)}, name=NAME)
    assert access.server.url == "https://10.0.0.1:6443"


def test_refused_when_no_file_of_the_list_exists(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="KUBECONFIG: not one of the files"):
        kubeconfig.read(None, environ={"KUBECONFIG": f"{tmp_path}/a:{tmp_path}/b"}, name=NAME)


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
    assert read(tmp_path, content, **environ).server.proxy_url == "http://10.0.0.9:3128"
    assert read(tmp_path, config(), HTTPS_PROXY="http://p:1").server.proxy_url == "http://p:1"
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
    access = in_cluster.read(environ=environ, name=NAME, directory=folder)
    assert (access.context, access.namespace) == ("in-cluster", "namespace-content")
    assert access.server.url == url
    assert access.server.tls == BackendTLS(ca_file=folder / "ca.crt")
    assert access.server.credentials == Credentials(token_file=folder / "token")


def test_pod_goes_through_the_proxy_of_its_environment(tmp_path: Path) -> None:
    folder = service_account(tmp_path, "token")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    proxied = {**environ, "HTTPS_PROXY": "http://p:3128"}
    assert in_cluster.read(environ=proxied, name=NAME, directory=folder).server.proxy_url == "http://p:3128"
    direct = {**proxied, "NO_PROXY": "10.0.0.0/8"}
    access = in_cluster.read(environ=direct, name=NAME, directory=folder)
    assert access.server.proxy_url is None
    assert access.server.tls == BackendTLS(), "without a CA of its own, the system's count"
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
    with pytest.raises(InvalidConfig, match=said):
        in_cluster.read(environ=environ, name=NAME, directory=folder)


# What kubectl makes of the same files

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl here")


async def kubectl(*arguments: str, folder: Path, **environ: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        "kubectl",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environ},
    )
    async with asyncio.timeout(30):
        output, _ = await process.communicate()
    return output


@needs_kubectl
def test_several_files_mean_what_they_mean_to_kubectl(tmp_path: Path) -> None:
    environ = {"KUBECONFIG": several(tmp_path)}
    view = ("config", "view", "--minify", "--raw", "-o", "json")
    theirs = orjson.loads(asyncio.run(kubectl(*view, folder=tmp_path, **environ)))
    ours = kubeconfig.read(None, environ=environ, name=NAME)
    assert theirs["current-context"] == ours.context
    assert theirs["users"][0]["user"]["token"] == ours.server.credentials.token
    assert theirs["clusters"][0]["cluster"]["server"] == ours.server.url


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
            transport = Transport(
                kubeconfig.read(path, environ={}, name=NAME).server, polling=Polling(total_timeout=10)
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
