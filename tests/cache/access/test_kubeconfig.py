"""What a kubeconfig and a pod's service account say, as client-go takes it; kubectl is asked where it is."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from cache.access.kubeconfigs import EXEC, config, read, refusal
from specmux_cache.access import kubeconfig
from specmux_cache.access.server_access import Credentials, ExecPlugin, ServerTLS
from specmux_cache.errors import AccessError

SECRET = "s3cret-value"


PEM = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


DATA = base64.b64encode(PEM).decode()


def credentials(folder: Path, **user: Any) -> Credentials:
    return read(folder, config(user=user)).credentials


def test_context_names_the_apiserver(tmp_path: Path) -> None:
    access = read(tmp_path, config(server="https://10.0.0.1:6443/base/", user={"token": "t"}))
    assert (access.context, access.namespace) == ("here", "ns")
    assert access.url == "https://10.0.0.1:6443/base"
    assert access.credentials == Credentials(token="t")
    assert access.tls == ServerTLS()


def test_named_context_goes_before_the_current_one(tmp_path: Path) -> None:
    content = config()
    content["contexts"].append({"name": "there", "context": {"cluster": "d"}})
    content["clusters"].append({"name": "d", "cluster": {"server": "http://10.0.0.2"}})
    access = read(tmp_path, content, context="there")
    assert (access.context, access.namespace) == ("there", "default")
    assert access.url == "http://10.0.0.2"


def test_json_is_read_too(tmp_path: Path) -> None:
    text = orjson.dumps(config(user={"token": "t"}), option=orjson.OPT_INDENT_2).decode()
    assert read(tmp_path, text).credentials.token == "t"


def test_files_start_at_the_folder_of_the_file(tmp_path: Path) -> None:
    user = {"client-certificate": "pki/c.crt", "client-key": "/abs/c.key", "tokenFile": "../token"}
    server = read(tmp_path, config(user=user, **{"certificate-authority": "ca.crt"}))
    assert server.tls == ServerTLS(
        ca_file=tmp_path / "ca.crt", cert_file=tmp_path / "pki/c.crt", key_file=Path("/abs/c.key")
    )
    assert server.credentials.token_file == tmp_path / "../token"


def test_data_goes_before_files(tmp_path: Path) -> None:
    user = {
        "client-certificate": "c.crt", "client-certificate-data": DATA,
        "client-key": "c.key", "client-key-data": DATA,
    }  # fmt: skip
    cluster = {"certificate-authority": "ca.crt", "certificate-authority-data": DATA}
    tls = read(tmp_path, config(user=user, **cluster)).tls
    assert tls == ServerTLS(ca_data=PEM, cert_data=PEM, key_data=PEM)


def test_one_half_of_a_pair_may_be_a_file(tmp_path: Path) -> None:
    user = {"client-certificate-data": DATA, "client-key": "c.key"}
    tls = read(tmp_path, config(user=user)).tls
    assert (tls.cert_data, tls.key_file) == (PEM, tmp_path / "c.key")


def test_tls_settings_of_the_cluster(tmp_path: Path) -> None:
    cluster = {"tls-server-name": "api.example", "insecure-skip-tls-verify": True}
    tls = read(tmp_path, config(**cluster)).tls
    assert tls == ServerTLS(server_name="api.example", insecure_skip_verify=True)


@pytest.mark.parametrize(
    ("cluster", "url"),
    [
        ({"server": "10.0.0.1:8080"}, "http://10.0.0.1:8080"),
        ({"server": "10.0.0.1:8080", "insecure-skip-tls-verify": True}, "https://10.0.0.1:8080"),
        ({"server": "https://[fd00::1]:6443"}, "https://[fd00::1]:6443"),
    ],
)
def test_server_may_lack_a_scheme(cluster: dict[str, Any], url: str, tmp_path: Path) -> None:
    assert read(tmp_path, config(**cluster)).url == url


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
    found = read(tmp_path, config(server=server, user=user)).credentials
    assert found.token == ("t" if is_kept else None)
    assert found.impersonation == (("Impersonate-User", "jane"),)


def test_user_may_be_absent(tmp_path: Path) -> None:
    content = config()
    del content["contexts"][0]["context"]["user"]
    assert read(tmp_path, content).credentials == Credentials()


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
    found = read(tmp_path, config(user={"exec": plugin}, extensions=extensions)).credentials
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
        ({"clusters": []}, 'the context "here" names the cluster "c"; the kubeconfig has no clusters'),
        ({"users": None}, 'the context "here" names the user "u"; the kubeconfig has no users'),
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
    with pytest.raises(AccessError, match="No such file"):
        kubeconfig.read(tmp_path / "none", {})
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(AccessError, match="not UTF-8"):
        kubeconfig.read(tmp_path / "bytes", {})


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
    assert read(tmp_path, content).credentials.token == "t"


def test_secrets_are_in_no_repr(tmp_path: Path) -> None:
    user = {
        "token": SECRET, "client-key-data": base64.b64encode(SECRET.encode()).decode(),
        "client-certificate": "c",
        "exec": {**EXEC, "args": [SECRET], "env": [{"name": "A", "value": SECRET}]},
    }  # fmt: skip
    access = read(tmp_path, config(user=user, **{"proxy-url": f"http://jane:{SECRET}@10.0.0.9:3128"}))
    assert access.proxy == f"http://jane:{SECRET}@10.0.0.9:3128"
    basic = read(tmp_path, config(user={"username": "jane", "password": SECRET}))
    assert SECRET not in repr(access) + repr(basic)
