"""Parse a kubeconfig as client-go does: merge files, choose a context, find its server.

Errors never quote a value, since half of them are secret. Entries that the context does not use are skipped,
and unknown keys are ignored.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from specmux_cache.access.field_values import is_loopback
from specmux_cache.access.kubeconfig_members import KubeconfigEntry, Members
from specmux_cache.access.kubeconfig_user import USER, credentials_of, pair_of
from specmux_cache.access.proxies import environment_proxy
from specmux_cache.access.server_access import Credentials, ServerAccess, ServerTLS
from specmux_cache.access.small_files import UnreadableFile, read_small
from specmux_cache.access.urls import backend_url, proxy_url
from specmux_cache.access.yaml_nodes import YAMLReader
from specmux_cache.errors import KubeconfigError
from specmux_converters.errors import cut
from specmux_converters.lazy.dataclasses import dataclass

FILE_MAX: Final = 16 * 1024 * 1024

_FILE: Final = ("current-context", "clusters", "contexts", "users")
_CLUSTER: Final = (
    "server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority",
    "certificate-authority-data", "proxy-url", "extensions",
)  # fmt: skip


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
            f"no context was named, and there is no current-context; {_known(merged.contexts, 'context')}",
            where=", ".join(map(str, _files(path, environ))),
        )
    chosen = _named(merged.contexts, "context", wanted).members(("cluster", "user", "namespace"))
    cluster_name, user_name = chosen.text("cluster"), chosen.text("user")
    namespace = chosen.text("namespace")
    chosen.entry.reader.finish()
    if cluster_name is None:
        raise KubeconfigError(f'the context "{cut(wanted)}" names no cluster')
    cluster = _named(merged.clusters, "cluster", cluster_name, of=wanted).members(_CLUSTER)
    user = None if user_name is None else _named(merged.users, "user", user_name, of=wanted).members(USER)
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


def _named(entries: Mapping[str, KubeconfigEntry], kind: str, name: str, *, of: str = "") -> KubeconfigEntry:
    """``of``: the context that refers to it."""
    if name not in entries:
        who = f'the context "{cut(of)}" names the {kind}' if of else f"there is no {kind}"
        raise KubeconfigError(f'{who} "{cut(name)}"; {_known(entries, kind)}')
    return entries[name]


def _known(entries: Mapping[str, KubeconfigEntry], kind: str) -> str:
    return f"known: {cut(', '.join(sorted(entries)))}" if entries else f"the kubeconfig has no {kind}s"


def _server(cluster: Members, user: Members | None, environ: Mapping[str, str]) -> ServerAccess:
    tls = _tls(cluster, user)
    credentials = Credentials() if user is None else credentials_of(user, cluster)
    is_tls_meant = tls != ServerTLS()
    url = cluster.checked("server", lambda text: backend_url(_with_scheme(text, is_tls_meant=is_tls_meant)))
    proxy = cluster.checked("proxy-url", proxy_url)
    if "server" not in cluster.nodes:
        cluster.fault("", "names no server")
    for members in (cluster, user):
        if members is not None:
            members.entry.reader.finish()
    if not url:
        raise KubeconfigError(f"{cluster.entry.key}: names no server")
    if not url.startswith("https:") and not is_loopback(urlsplit(url).hostname):
        # As in client-go: credentials are not sent over a network in clear text.
        credentials = Credentials(impersonation=credentials.impersonation)
    return ServerAccess(
        url=url,
        tls=tls,
        credentials=credentials,
        proxy=proxy or environment_proxy(url, environ),
    )


def _with_scheme(text: str, *, is_tls_meant: bool) -> str:
    # client-go also accepts host:port, and assumes TLS if any of its settings is present.
    return text if "://" in text else f"{'https' if is_tls_meant else 'http'}://{text}"


def _tls(cluster: Members, user: Members | None) -> ServerTLS:
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
