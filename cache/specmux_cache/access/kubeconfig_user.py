"""Parse the user of a kubeconfig: the credentials for an apiserver. Pure."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote

import orjson
import yaml

from specmux_cache.access.field_values import is_bearer_value
from specmux_cache.access.kubeconfig_members import Members
from specmux_cache.access.server_access import Credentials, ExecPlugin
from specmux_cache.errors import BadValue
from specmux_converters.errors import cut

EXEC_API: Final = "client.authentication.k8s.io/"
CLUSTER_EXTENSION: Final = "client.authentication.k8s.io/exec"
"""The extension of a cluster that is passed to exec plugins."""

CLUSTER_CONFIG_NODES: Final = 10_000

USER: Final = (
    "client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "tokenFile",
    "username", "password", "exec", "auth-provider", "as", "as-uid", "as-groups", "as-user-extra",
)  # fmt: skip
_EXEC: Final = (
    "apiVersion", "command", "args", "env", "installHint", "interactiveMode", "provideClusterInfo",
)  # fmt: skip


def pair_of(user: Members) -> dict[str, Any]:
    cert_data, cert_file = user.data("client-certificate-data"), user.file("client-certificate")
    key_data, key_file = user.data("client-key-data"), user.file("client-key")
    has_cert, has_key = bool(cert_data or cert_file), bool(key_data or key_file)
    if has_cert != has_key:
        user.fault("", f"has a client-{'certificate' if has_cert else 'key'} without its other half")
    return {
        "cert_data": cert_data,
        "cert_file": None if cert_data else cert_file,
        "key_data": key_data,
        "key_file": None if key_data else key_file,
    }


def credentials_of(user: Members, cluster: Members) -> Credentials:
    if "auth-provider" in user.nodes:
        user.fault("auth-provider", "was removed from Kubernetes in 1.26; its provider has an exec plugin")
    token_file, token = user.file("tokenFile"), user.checked("token", _token)
    name, password = user.text("username"), user.text("password")
    basic = None if name is None and password is None else (name or "", password or "")
    if basic is not None and (token or token_file):
        user.fault("username", "stands beside a token; it can be only one of them")
    return Credentials(
        token_file=token_file,
        token=None if token_file else token,
        basic=basic,
        exec_plugin=_exec_plugin(user, cluster) if "exec" in user.nodes else None,
        impersonation=tuple(_impersonation(user)),
    )


def _exec_plugin(user: Members, cluster: Members) -> ExecPlugin | None:
    plugin = user.inner("exec", _EXEC)
    command, version = plugin.text("command"), plugin.text("apiVersion") or ""
    if command is None:
        plugin.fault("", "has no command")
        return None
    if version not in (f"{EXEC_API}v1", f"{EXEC_API}v1beta1"):
        plugin.fault("apiVersion", f"wants {EXEC_API}v1 or {EXEC_API}v1beta1")
    if plugin.text("interactiveMode") == "Always":
        plugin.fault("interactiveMode", "is Always, but nobody is here to answer the program")
    wants_cluster = plugin.flag("provideClusterInfo")
    return ExecPlugin(
        # With a slash it is a path relative to the file's folder; without, it is searched in PATH.
        command=str(user.entry.folder / command) if "/" in command else command,
        args=tuple(plugin.texts("args")),
        env=tuple(_environment(plugin)),
        api_version=version,
        install_hint=_plain(plugin.text("installHint") or ""),
        provide_cluster_info=wants_cluster,
        cluster_config=_cluster_config(cluster) if wants_cluster else None,
    )


def _environment(plugin: Members) -> list[tuple[str, str]]:
    pairs = []
    for item in plugin.items("env"):
        pair = item.members(("name", "value"))
        name, value = pair.text("name"), pair.text("value") or ""
        if name is None or "=" in name or "\0" in name + value:
            pair.fault("name", "is no name of an environment variable")
        else:
            pairs.append((name, value))
    return pairs


def _cluster_config(cluster: Members) -> bytes | None:
    for item in cluster.items("extensions"):
        pair = item.members(("name", "extension"))
        if pair.text("name") == CLUSTER_EXTENSION and "extension" in pair.nodes:
            try:
                return orjson.dumps(_plain_value(pair.nodes["extension"], [CLUSTER_CONFIG_NODES]))
            except BadValue as bad:
                pair.fault("extension", str(bad))
    return None


def _plain_value(node: yaml.Node, left: list[int]) -> Any:
    """A node as a JSON value. ``left``: remaining number of nodes, since aliases multiply them."""
    left[0] -= 1
    if left[0] < 0:
        raise BadValue(f"holds more than {CLUSTER_CONFIG_NODES} values")
    match node:
        case yaml.MappingNode():
            return {str(key.value): _plain_value(value, left) for key, value in node.value}
        case yaml.SequenceNode():
            return [_plain_value(item, left) for item in node.value]
        case _:
            tag = node.tag.rpartition(":")[2]
            return node.value if tag not in ("null", "bool", "int", "float") else yaml.safe_load(node.value)


def _impersonation(user: Members) -> list[tuple[str, str]]:
    """Header fields of Kubernetes' user impersonation; names of groups and extra values repeat."""
    name, uid, groups = user.text("as"), user.text("as-uid"), user.texts("as-groups")
    extra_node = user.nodes.get("as-user-extra")
    extra_names = _names(extra_node)
    extra = user.inner("as-user-extra", extra_names)
    fields = [] if name is None else [("Impersonate-User", name)]
    fields += [] if uid is None else [("Impersonate-Uid", uid)]
    fields += [("Impersonate-Group", group) for group in groups]
    for key in extra_names:
        fields += [(f"Impersonate-Extra-{quote(key.lower(), safe='')}", value) for value in extra.texts(key)]
    if fields and name is None:
        user.fault("", "has as-uid, as-groups or as-user-extra without as")
    if not all(value.isprintable() and value.isascii() for _, value in fields):
        user.fault("as", "holds a character that no header field can hold, or its groups or extra do")
    return fields


def _names(node: yaml.Node | None) -> tuple[str, ...]:
    if not isinstance(node, yaml.MappingNode):
        return ()
    return tuple(str(key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode))


def _token(text: str) -> str:
    token = text.strip()
    if not is_bearer_value(token):
        raise BadValue("holds no bearer token")
    return token


def _plain(text: str) -> str:
    """Without terminal escapes, since it is shown to people."""
    return cut(re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text))
