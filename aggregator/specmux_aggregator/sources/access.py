"""Which server options mean, and what it is shown of us.

A command that asks nobody imports neither an event loop nor TLS for it (a test lists what it does import).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from specmux_aggregator.config.bad_value import BadValue
from specmux_aggregator.config.urls import backend_url
from specmux_aggregator.errors import InvalidConfig, NoSource, SourceError
from specmux_aggregator.sources.options import SourceOptions

if TYPE_CHECKING:  # what talks to servers takes longer to import than what reads the disk cache
    import ssl

    from specmux_aggregator.model.backend import Backend

NAME: Final = "server"
"""Of the backend that a command asks, where a backend has to have a name."""

_Fields: TypeAlias = tuple[tuple[str, str], ...]

NO_SOURCE: Final = "give --server URL, --kubeconfig FILE, --directory DIR or --file FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    """How a client of the cache reaches one server."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    tls: ssl.SSLContext | None
    server_name: str | None
    """The certificate's, where it is not the URL's."""
    proxy: str | None
    partition: str | None
    """Entries are shared by this name, so that a token that is exchanged every hour keeps what was stored;
    None: by what is shown."""
    identity: str = ""
    """Names who a client certificate is for."""


def access_of(options: SourceOptions, environ: Mapping[str, str] | None = None) -> ServerAccess:
    """Runs an exec plugin where the kubeconfig has one. Raises SourceError, InvalidConfig; blocks."""
    environ = os.environ if environ is None else environ
    if options.server is not None and options.offline:
        return _stored(options)
    if options.server is not None:
        backend, partition = named_server(options, environ), None
    else:
        backend, context = _cluster(options, environ)
        partition = f"context-{context}"
    fields, tls = ((), None) if options.offline else _shown(backend)
    headers = dict(fields)
    if len(headers) < len(fields):
        raise SourceError("the kubeconfig impersonates several groups, which is not supported here")
    return ServerAccess(
        url=backend.url,
        headers=headers,
        tls=tls,
        server_name=backend.tls.server_name,
        proxy=backend.proxy_url,
        partition=partition,
        identity=str(options.client_certificate or ""),
    )


def _stored(options: SourceOptions) -> ServerAccess:
    """What entries of the disk cache are told apart by, of a server that is not asked: nothing is run."""
    url = _url(options)
    return ServerAccess(
        url=url,
        headers=_token(url, options.token_file),
        tls=None,
        server_name=None,
        proxy=None,
        partition=None,
        identity=str(options.client_certificate or ""),
    )


def _url(options: SourceOptions) -> str:
    try:
        return backend_url(options.server or "")
    except BadValue as error:
        raise NoSource(f"--server: {error}") from error


def named_server(options: SourceOptions, environ: Mapping[str, str]) -> Backend:
    """What --server names, with the credentials of these options. Raises NoSource, InvalidConfig."""
    from specmux_aggregator.kubernetes.access import environment_proxy
    from specmux_aggregator.model.backend import Backend, BackendName, BackendTLS, Credentials

    url = _url(options)
    return Backend(
        name=BackendName(NAME),
        url=url,
        tls=BackendTLS(
            ca_file=options.ca_file,
            cert_file=options.client_certificate,
            key_file=options.client_key,
            insecure_skip_verify=options.insecure_skip_tls_verify,
        ),
        credentials=Credentials(token_file=options.token_file),
        proxy_url=environment_proxy(url, environ),
    )


def _cluster(options: SourceOptions, environ: Mapping[str, str]) -> tuple[Backend, str]:
    """The apiserver of a context, else of the pod that this runs in."""
    from specmux_aggregator.kubernetes import in_cluster, kubeconfig
    from specmux_aggregator.model.backend import BackendName

    name = BackendName(NAME)
    is_asked = options.kubeconfig is not None or options.context is not None
    if not is_asked and not _has_kubeconfig(environ):
        if "KUBERNETES_SERVICE_HOST" not in environ:
            raise NoSource(f"there is no kubeconfig, so no server to ask; {NO_SOURCE}")
        access = in_cluster.read(environ=environ, name=name)
    else:
        try:
            access = kubeconfig.read(
                options.kubeconfig, context=options.context, environ=environ, name=BackendName(NAME)
            )
        except InvalidConfig as error:
            raise NoSource(f"{error}; or {NO_SOURCE}") from error
    return access.server, access.context


def _has_kubeconfig(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("KUBECONFIG")) or Path(environ.get("HOME", "/"), ".kube", "config").exists()


def _token(url: str, file: Path | None) -> Mapping[str, str]:
    if file is None:
        return {}
    from specmux_aggregator.upstream.credentials import TokenFile, Unusable

    try:
        return {"Authorization": f"Bearer {TokenFile(file).read()}"}
    except Unusable as error:
        raise SourceError(f"{url}: {error}") from error


def _shown(backend: Backend) -> tuple[_Fields, ssl.SSLContext | None]:
    """Header fields, and the TLS context of an https server."""
    from specmux_aggregator.model.backend import Credentials

    if backend.url.startswith("http:") and backend.credentials == Credentials():
        return (), None
    from specmux_aggregator.upstream.credentials import FileIdentity, Unusable, plugin_of

    try:
        if plugin_of(backend.credentials) is None:
            return FileIdentity(backend).read()
        return _issued(backend)
    except Unusable as error:
        raise SourceError(f"{backend.url}: {error}") from error


def _issued(backend: Backend) -> tuple[_Fields, ssl.SSLContext | None]:
    """With what a program prints. Raises Unusable."""
    import asyncio

    from specmux_aggregator.upstream.identities import Identity, Shown

    async def ask() -> Shown:
        identity = Identity(backend)
        try:
            return await identity.shown()
        finally:
            await identity.close()

    shown = asyncio.run(ask())
    return shown.fields, shown.context
