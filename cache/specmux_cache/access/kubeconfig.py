"""Parse a kubeconfig as client-go does: merge files, choose a context, find its server.

Errors never quote a value, since half of them are secret. Entries that the context does not use are skipped,
and unknown keys are ignored.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import orjson
import yaml

from specmux_cache.access.server_access import (
    Credentials,
    ExecPlugin,
    ServerAccess,
    ServerTLS,
    is_bearer_value,
)
from specmux_cache.access.urls import backend_url, environment_proxy, is_loopback, proxy_url
from specmux_cache.access.yaml_nodes import YAMLReader
from specmux_cache.errors import BadValue, KubeconfigError
from specmux_cache.whole_files import UnreadableFile, read_small
from specmux_converters.errors import cut
from specmux_converters.lazy.dataclasses import dataclass

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
FILE_MAX: Final = 16 * 1024 * 1024
_FILE: Final = ("current-context", "clusters", "contexts", "users")
_CLUSTER: Final = (
    "server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority",
    "certificate-authority-data", "proxy-url", "extensions",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KubeconfigEntry:
    """A mapping of one file, with its context and, once they are read, its members."""

    reader: YAMLReader
    node: yaml.Node | None
    key: str
    folder: Path
    nodes: Mapping[str, yaml.Node] = field(default_factory=dict)

    def members(self, known: tuple[str, ...]) -> KubeconfigEntry:
        return replace(self, nodes=self.reader.members(self.node, self.key, known, is_open=True))

    def inner(self, name: str, known: tuple[str, ...]) -> KubeconfigEntry:
        return self._at(name, self.nodes.get(name)).members(known)

    def items(self, name: str) -> list[KubeconfigEntry]:
        nodes = self.reader.items(self.nodes.get(name), self._key(name))
        return [self._at(f"{name}[{index}]", node) for index, node in enumerate(nodes)]

    def text(self, name: str) -> str | None:
        """None if it is absent, empty or invalid."""
        return self._read_member(name, str, str) or None

    def flag(self, name: str) -> bool:
        return self._read_member(name, bool, lambda text: text.lower() in ("true", "yes", "on")) or False

    def file(self, name: str) -> Path | None:
        text = self.text(name)
        return None if text is None else self.folder / text

    def data(self, name: str) -> bytes | None:
        return self._read_member(name, str, _base64) or None

    def read_as(self, name: str, read: Any) -> Any:
        """The text converted by ``read``, which raises BadValue."""
        return self._read_member(name, str, lambda text: read(text) if text else None)

    def texts(self, name: str) -> list[str]:
        found = [
            item.reader.scalar(item.node, item.key, str, str)
            for item in self.items(name)
            if item.node is not None
        ]
        return [item for item in found if item is not None]

    def fault(self, name: str, reason: str) -> None:
        node = self.nodes.get(name, self.node)
        if node is not None:
            self.reader.fault(node, self._key(name) if name else self.key, reason)

    def _read_member(self, name: str, wanted: type, read: Any) -> Any:
        node = self.nodes.get(name)
        return None if node is None else self.reader.scalar(node, self._key(name), wanted, read)

    def _at(self, name: str, node: yaml.Node | None) -> KubeconfigEntry:
        return KubeconfigEntry(self.reader, node, self._key(name), self.folder)

    def _key(self, name: str) -> str:
        return f"{self.key}.{name}" if self.key else name


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadValue("is not base64") from None


def pair_of(user: KubeconfigEntry) -> dict[str, Any]:
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


def credentials_of(user: KubeconfigEntry, cluster: KubeconfigEntry) -> Credentials:
    if "auth-provider" in user.nodes:
        user.fault("auth-provider", "was removed from Kubernetes in 1.26; its provider has an exec plugin")
    token_file, token = user.file("tokenFile"), user.read_as("token", _parse_token)
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


def _exec_plugin(user: KubeconfigEntry, cluster: KubeconfigEntry) -> ExecPlugin | None:
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
        command=str(user.folder / command) if "/" in command else command,
        args=tuple(plugin.texts("args")),
        env=tuple(_environment(plugin)),
        api_version=version,
        install_hint=_plain(plugin.text("installHint") or ""),
        provide_cluster_info=wants_cluster,
        cluster_config=_cluster_config(cluster) if wants_cluster else None,
    )


def _environment(plugin: KubeconfigEntry) -> list[tuple[str, str]]:
    pairs = []
    for item in plugin.items("env"):
        pair = item.members(("name", "value"))
        name, value = pair.text("name"), pair.text("value") or ""
        if name is None or "=" in name or "\0" in name + value:
            pair.fault("name", "is no name of an environment variable")
        else:
            pairs.append((name, value))
    return pairs


def _cluster_config(cluster: KubeconfigEntry) -> bytes | None:
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


def _impersonation(user: KubeconfigEntry) -> list[tuple[str, str]]:
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


def _parse_token(text: str) -> str:
    token = text.strip()
    if not is_bearer_value(token):
        raise BadValue("holds no bearer token")
    return token


def _plain(text: str) -> str:
    """Without terminal escapes, since it is shown to people."""
    return cut(re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text))


@dataclass(slots=True)
class _MergedFiles:
    """The merged content of all files; of equal names the first wins."""

    contexts: dict[str, KubeconfigEntry]
    clusters: dict[str, KubeconfigEntry]
    users: dict[str, KubeconfigEntry]
    current: str | None = None


def read(path: Path | None, environ: Mapping[str, str], *, context: str | None = None) -> ServerAccess:
    """The apiserver of a context. Raises KubeconfigError.

    Without a path, the files are those in $KUBECONFIG, else ~/.kube/config.
    """
    merged = _MergedFiles({}, {}, {})
    for file in _files(path, environ):
        _merge(merged, file)
    wanted = context or merged.current
    if wanted is None:
        raise KubeconfigError(
            "no context was named, and there is no current-context; "
            + _list_names(merged.contexts, "context"),
            where=", ".join(map(str, _files(path, environ))),
        )
    chosen = _find_entry(merged.contexts, "context", wanted).members(("cluster", "user", "namespace"))
    cluster_name, user_name = chosen.text("cluster"), chosen.text("user")
    namespace = chosen.text("namespace")
    chosen.reader.finish()
    if cluster_name is None:
        raise KubeconfigError(f'the context "{cut(wanted)}" names no cluster')
    cluster = _find_entry(merged.clusters, "cluster", cluster_name, of=wanted).members(_CLUSTER)
    user = (
        None if user_name is None else _find_entry(merged.users, "user", user_name, of=wanted).members(USER)
    )
    server = _server(cluster, user, environ)
    return replace(server, context=wanted, namespace=namespace or "default")


def _files(path: Path | None, environ: Mapping[str, str]) -> list[Path]:
    if path is not None:
        return [path]
    listed = [Path(item) for item in environ.get("KUBECONFIG", "").split(os.pathsep) if item]
    if not listed:
        return [Path(environ.get("HOME", "/")) / ".kube" / "config"]
    found = [item for item in listed if item.exists()]
    if not found:
        raise KubeconfigError("not one of the files it lists exists", where="KUBECONFIG")
    return found


def _merge(merged: _MergedFiles, path: Path) -> None:
    reader = YAMLReader(path, KubeconfigError)
    top = KubeconfigEntry(reader, reader.compose(_text(path)), "", path.absolute().parent).members(_FILE)
    current = top.text("current-context")
    for plural, held in (
        ("contexts", merged.contexts),
        ("clusters", merged.clusters),
        ("users", merged.users),
    ):
        seen: set[str] = set()
        for item in top.items(plural):
            singular = plural.removesuffix("s")
            pair = item.members(("name", singular))
            name = pair.text("name")
            if name is None:
                continue  # nothing can refer to it
            if name in seen:
                pair.fault("name", "given twice")
            seen.add(name)
            inner = pair.nodes.get(singular)
            held.setdefault(
                name, KubeconfigEntry(reader, inner, f"{plural}[{cut(name)}].{singular}", item.folder)
            )
    reader.finish()
    merged.current = merged.current or current


def _text(path: Path) -> str:
    try:
        return read_small(path, max_bytes=FILE_MAX).decode("utf-8-sig")
    except UnreadableFile as error:
        raise KubeconfigError(str(error), where=str(path)) from error
    except UnicodeDecodeError as error:
        raise KubeconfigError("not UTF-8", where=str(path)) from error


def _find_entry(
    entries: Mapping[str, KubeconfigEntry], kind: str, name: str, *, of: str = ""
) -> KubeconfigEntry:
    """``of``: the context that refers to it."""
    if name not in entries:
        who = f'the context "{cut(of)}" names the {kind}' if of else f"there is no {kind}"
        raise KubeconfigError(f'{who} "{cut(name)}"; {_list_names(entries, kind)}')
    return entries[name]


def _list_names(entries: Mapping[str, KubeconfigEntry], kind: str) -> str:
    return f"known: {cut(', '.join(sorted(entries)))}" if entries else f"the kubeconfig has no {kind}s"


def _server(
    cluster: KubeconfigEntry, user: KubeconfigEntry | None, environ: Mapping[str, str]
) -> ServerAccess:
    tls = _tls(cluster, user)
    credentials = Credentials() if user is None else credentials_of(user, cluster)
    # client-go also accepts host:port, and assumes TLS if any of its settings is present.
    scheme = (
        "" if "://" in (cluster.text("server") or "") else "http://" if tls == ServerTLS() else "https://"
    )
    url = cluster.read_as("server", lambda text: backend_url(scheme + text))
    proxy = cluster.read_as("proxy-url", proxy_url)
    if "server" not in cluster.nodes:
        cluster.fault("", "names no server")
    for members in (cluster, user):
        if members is not None:
            members.reader.finish()
    if not url:
        raise KubeconfigError(f"{cluster.key}: names no server")
    if not url.startswith("https:") and not is_loopback(urlsplit(url).hostname):
        # As in client-go: credentials are not sent over a network in clear text.
        credentials = Credentials(impersonation=credentials.impersonation)
    return ServerAccess(
        url=url,
        tls=tls,
        credentials=credentials,
        proxy=proxy or environment_proxy(url, environ),
    )


def _tls(cluster: KubeconfigEntry, user: KubeconfigEntry | None) -> ServerTLS:
    ca_data, ca_file = cluster.data("certificate-authority-data"), cluster.file("certificate-authority")
    insecure = cluster.flag("insecure-skip-tls-verify")
    if insecure and (ca_data or ca_file):
        cluster.fault("insecure-skip-tls-verify", "is set beside a certificate-authority; it can be only one")
    pair: dict[str, Any] = {} if user is None else pair_of(user)
    return ServerTLS(
        # Inline data precedes a file, here and below, as in client-go.
        ca_data=ca_data,
        ca_file=None if ca_data else ca_file,
        server_name=cluster.text("tls-server-name"),
        insecure_skip_verify=insecure,
        **pair,
    )
