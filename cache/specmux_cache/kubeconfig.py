"""What a client is made with for the server of a kubeconfig's context."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from specmux_cache.access import kubeconfig
from specmux_cache.access.presentation import client_access
from specmux_cache.access.server_access import ClientAccess
from specmux_cache.errors import AccessError, KubeconfigError
from specmux_cache.reading.options import CacheOptions


def client_arguments(
    path: str | os.PathLike[str] | None, *, context: str | None, options: CacheOptions | None
) -> tuple[str, CacheOptions, dict[str, Any]]:
    """What a client of this server is made with: positional, and by name. Entries are the context's unless
    the options name a partition. Raises KubeconfigError; blocks."""
    access = read_access(None if path is None else Path(path), context=context, environ=os.environ)
    options = options or CacheOptions()
    if options.partition is None:
        options = replace(options, partition=access.partition)
    named: dict[str, Any] = {"headers": access.headers, "tls": access.tls}
    return access.url, options, {**named, "proxy": access.proxy, "server_name": access.server_name}


def read_access(path: Path | None, *, context: str | None, environ: Mapping[str, str]) -> ClientAccess:
    """Of the context of this name, or the current one. Runs its program that prints credentials, if any.

    Raises KubeconfigError; blocks.
    """
    try:
        access = kubeconfig.read(path, environ, context=context)
        return client_access(access, partition=f"context-{access.context}")
    except KubeconfigError:
        raise
    except AccessError as error:
        raise KubeconfigError(error.reason, where=error.where) from error
