"""Read the credentials for a server once: for a client's start, and for commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from specmux_cache.access.server_access import ClientAccess, Credentials, ExecPlugin, ServerAccess
from specmux_cache.errors import AccessError, KubeconfigError, UnusableCredentials

if TYPE_CHECKING:  # TLS takes longer to import than a warm command takes
    import ssl

    from specmux_cache.access.credentials import HeaderFields


def read_access(path: Path | None, *, context: str | None, environ: Mapping[str, str]) -> ClientAccess:
    """The access of the context of this name, or of the current one. Runs its credential program, if any.

    Raises KubeconfigError; blocks.
    """
    from specmux_cache.access import kubeconfig

    try:
        access = kubeconfig.read(path, environ, context=context)
        return client_access(access, partition=f"context-{access.context}")
    except KubeconfigError:
        raise
    except AccessError as error:
        raise KubeconfigError(error.reason, where=error.where) from error


def client_access(access: ServerAccess, *, partition: str | None, identity: str = "") -> ClientAccess:
    """With the current credentials of files and programs. Raises UnusableCredentials; blocks."""
    fields, tls = read_credentials(access)
    headers = dict(fields)
    if len(headers) < len(fields):
        raise UnusableCredentials(
            "the kubeconfig impersonates several groups, which is not supported here", cause="credentials"
        )
    return ClientAccess(
        url=access.url,
        headers=headers,
        tls=tls,
        server_name=access.server_name,
        proxy=access.proxy,
        partition=partition,
        identity=identity,
    )


def read_credentials(access: ServerAccess) -> tuple[HeaderFields, ssl.SSLContext | None]:
    """Header fields, and the TLS context of an https server. Raises UnusableCredentials; blocks."""
    if access.url.startswith("http:") and access.credentials == Credentials():
        return (), None
    from specmux_cache.access.credentials import FileIdentity, plugin_of  # requires ssl

    plugin = plugin_of(access.credentials)
    if plugin is None:
        return FileIdentity(access).read()
    from concurrent.futures import ThreadPoolExecutor

    # A separate thread, since the caller's may have a running event loop.
    with ThreadPoolExecutor(1) as thread:
        token, pair = thread.submit(_run_plugin, plugin, access).result()
    return FileIdentity(access).read(token, pair)


def _run_plugin(plugin: ExecPlugin, access: ServerAccess) -> tuple[str | None, tuple[bytes, bytes] | None]:
    import asyncio  # needed only to run a program: most commands do without an event loop

    from specmux_cache.access.exec_plugin import ExecCredentials

    async def ask() -> tuple[str | None, tuple[bytes, bytes] | None]:
        credentials = ExecCredentials(plugin, access)
        try:
            issued = await credentials.current()
        finally:
            await credentials.close()
        return issued.token, issued.pair

    return asyncio.run(ask())
