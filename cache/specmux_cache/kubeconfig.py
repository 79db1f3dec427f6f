"""Build a client's access to the server of a kubeconfig's context."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from specmux_cache.access import kubeconfig
from specmux_cache.access.presentation import client_access
from specmux_cache.access.server_access import ClientAccess
from specmux_cache.errors import AccessError, KubeconfigError


def read_access(path: Path | None, *, context: str | None, environ: Mapping[str, str]) -> ClientAccess:
    """The access of the context of this name, or of the current one. Runs its credential program, if any.

    Raises KubeconfigError; blocks.
    """
    try:
        access = kubeconfig.read(path, environ, context=context)
        return client_access(access, partition=f"context-{access.context}")
    except KubeconfigError:
        raise
    except AccessError as error:
        raise KubeconfigError(error.reason, where=error.where) from error
