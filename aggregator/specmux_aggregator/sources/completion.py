"""What a shell completes: the group-versions of all servers in the disk cache. Asks no server."""

from __future__ import annotations

import os
from pathlib import Path

import click


def complete_group_versions(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """``apps/v1`` is offered, and ``apis/apps/v1`` to who begins to type it."""
    keys = {key for key in _stored(_directory(context)) if not key.startswith("/")}
    short = {key.split("/", 1)[1] for key in keys if key.startswith(("api/", "apis/"))}
    return sorted(
        name
        for name in short | (keys if incomplete.startswith("api") else set())
        if name.startswith(incomplete)
    )


def _directory(context: click.Context) -> Path:
    for each in (context, context.parent):
        values = {} if each is None else each.params
        named = values.get("cache_directory") or values.get("directory")
        if isinstance(named, Path):
            return named
    from specmux_cache.options import default_directory

    named = os.environ.get("SPECMUX_CACHE_DIRECTORY")
    return Path(named) if named else default_directory(os.environ)


def _stored(directory: Path) -> set[str]:
    """Nothing where there is no cache, or it cannot be read: completion says nothing."""
    from specmux_cache.errors import StoreError
    from specmux_cache.store.disk_store import DiskStore

    if not directory.is_dir():
        return set()
    try:
        with DiskStore.open(directory, warn=lambda _: None) as store:
            return {row.key.group_version for row in store.rows()}
    except (StoreError, OSError):
        return set()
