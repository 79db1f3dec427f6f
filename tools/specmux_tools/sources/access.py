"""Resolve options to a server and the credentials sent to it.

A command that asks nobody imports neither an event loop nor TLS for it (a test lists what it does import).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from specmux_aggregator.errors import NoKubeconfig, NoSource, SourceError
from specmux_cache.access.urls import backend_url
from specmux_cache.errors import AccessError, BadValue
from specmux_tools.sources.options import SourceOptions

if TYPE_CHECKING:  # what talks to servers takes longer to import than what reads the disk cache
    from specmux_aggregator.model.backend import Backend
    from specmux_cache.access.server_access import ClientAccess, ServerAccess

NAME: Final = "server"
"""The name of the backend that a command asks, where it has to have one."""


def access_of(options: SourceOptions, environ: Mapping[str, str] | None = None) -> ClientAccess:
    """Runs an exec plugin where the kubeconfig has one. Raises SourceError; blocks."""
    from specmux_cache.access.server_access import ClientAccess

    environ = os.environ if environ is None else environ
    if options.server is not None:
        server, partition = _access_of_server(options, environ), None
    else:
        server = _cluster(options, environ)
        partition = f"context-{server.context}"
    identity = str(options.client_certificate or "")
    if options.offline:
        # Entries of the disk cache are told apart by what the server would be shown; no program is run.
        return ClientAccess(
            url=server.url,
            headers=_token(server.url, options.token_file),
            tls=None,
            server_name=None,
            proxy=None,
            partition=partition,
            identity=identity,
        )
    from specmux_cache.access.presentation import client_access

    try:
        return client_access(server, partition=partition, identity=identity)
    except AccessError as error:
        raise SourceError(f"{server.url}: {error}") from error


def named_server(options: SourceOptions, environ: Mapping[str, str]) -> Backend:
    """The server of --server, with the credentials of these options, as a backend. Raises NoSource."""
    from specmux_aggregator.kubernetes.cluster_access import backend_of
    from specmux_aggregator.model.backend import BackendName

    return backend_of(_access_of_server(options, environ), BackendName(NAME))


def context_of(options: SourceOptions, environ: Mapping[str, str]) -> str:
    """The context of the kubeconfig that is meant. Raises NoSource."""
    if options.kubeconfig is None and options.context is None and not _has_kubeconfig(environ):
        raise NoKubeconfig(f"there is no kubeconfig; {_step()}")
    return _cluster(options, environ).context


def _access_of_server(options: SourceOptions, environ: Mapping[str, str]) -> ServerAccess:
    from specmux_cache.access.server_access import Credentials, ServerAccess, ServerTLS
    from specmux_cache.access.urls import environment_proxy

    try:
        url = backend_url(options.server or "")
    except BadValue as error:
        is_variable = options.server == environ.get("SPECMUX_SERVER")
        raise NoSource(f"{'SPECMUX_SERVER' if is_variable else '--server'}: {error}") from error
    try:
        proxy = None if options.offline else environment_proxy(url, environ)
    except AccessError as error:
        raise NoSource(str(error)) from error
    return ServerAccess(
        url=url,
        tls=ServerTLS(
            ca_file=options.ca_file,
            cert_file=options.client_certificate,
            key_file=options.client_key,
            insecure_skip_verify=options.insecure_skip_tls_verify,
            server_name=options.tls_server_name,
        ),
        credentials=Credentials(token_file=options.token_file),
        proxy=proxy,
    )


def _cluster(options: SourceOptions, environ: Mapping[str, str]) -> ServerAccess:
    """The apiserver of a context, else of the pod that this runs in."""
    from specmux_cache.access import in_cluster, kubeconfig

    is_asked = options.kubeconfig is not None or options.context is not None
    if not is_asked and not has_cluster(environ):
        raise NoKubeconfig(f"there is no kubeconfig, so no server to read from; {_step()}")
    try:
        if not is_asked and not _has_kubeconfig(environ):
            return in_cluster.read(environ)
        return kubeconfig.read(options.kubeconfig, environ, context=options.context)
    except AccessError as error:
        raise SourceError(f"{error}; or {_step()}") from error


def _step() -> str:
    """The next step: options that the command has."""
    context = click.get_current_context(silent=True)
    reads_files = context is None or any(each.name == "directories" for each in context.command.params)
    files = ", --kubeconfig FILE, --directory DIR or --file FILE" if reads_files else " or --kubeconfig FILE"
    return f"give --server URL{files}"


def has_cluster(environ: Mapping[str, str]) -> bool:
    """Whether there is a kubeconfig, usable or not, or a pod that this runs in."""
    return _has_kubeconfig(environ) or "KUBERNETES_SERVICE_HOST" in environ


def _has_kubeconfig(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("KUBECONFIG")) or Path(environ.get("HOME", "/"), ".kube", "config").exists()


def _token(url: str, file: Path | None) -> Mapping[str, str]:
    if file is None:
        return {}
    from specmux_cache.access.credentials import TokenFile

    try:
        return {"Authorization": f"Bearer {TokenFile(file).read()}"}
    except AccessError as error:
        raise SourceError(f"{url}: {error}") from error
