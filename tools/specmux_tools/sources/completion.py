"""What a shell completes: group-versions and kinds of all servers in the disk cache. Asks no server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:  # a completion of options imports no store
    from specmux_cache.store.disk_store import DiskStore


def complete_group_versions(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """``apps/v1`` is offered, and ``apis/apps/v1`` to who begins to type it."""
    keys = _read(context, _stored)
    short = {key.split("/", 1)[1] for key in keys if key.startswith(("api/", "apis/"))}
    return sorted(
        name
        for name in short | (keys if incomplete.startswith("api") else set())
        if name.startswith(incomplete)
    )


def complete_kinds(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Plurals, short names and kinds of cached discovery; nothing behind a dot, where fields begin."""
    if "." in incomplete:
        return []
    names = _read(context, _discovered)
    return sorted(name for name in names if name.lower().startswith(incomplete.lower()))


def _stored(store: DiskStore) -> set[str]:
    return {row.key.group_version for row in store.rows() if not row.key.group_version.startswith("/")}


def _discovered(store: DiskStore) -> set[str]:
    rows = [row for row in store.rows() if row.key.group_version in ("/api", "/apis")]
    bodies = [stored.body for row in rows if (stored := store.get(row.key)) is not None]
    return {name for body in bodies for name in _names_in(body)}


def _names_in(body: bytes) -> Iterator[str]:
    """Of an aggregated discovery document (KEP-3352); nothing of any other."""
    import orjson

    try:
        document = orjson.loads(body)
        for group in document["items"]:
            for version in group["versions"]:
                for resource in version["resources"]:
                    yield resource["resource"]
                    yield resource["responseKind"]["kind"]
                    yield from resource.get("shortNames") or ()
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return


def _directory(context: click.Context) -> Path:
    for each in (context, context.parent):
        values = {} if each is None else each.params
        named = values.get("cache_directory") or values.get("directory")
        if isinstance(named, Path):
            return named
    from specmux_cache.reading.options import default_directory

    named = os.environ.get("SPECMUX_CACHE_DIRECTORY")
    return Path(named) if named else default_directory(os.environ)


def _read(context: click.Context, names: Callable[[DiskStore], set[str]]) -> set[str]:
    """Nothing where there is no cache, or it cannot be read: completion says nothing."""
    from specmux_cache.errors import StoreError
    from specmux_cache.store.disk_store import DiskStore

    directory = _directory(context)
    if not directory.is_dir():
        return set()
    try:
        with DiskStore.open(directory, warn=lambda _: None) as store:
            return names(store)
    except (StoreError, OSError):
        return set()
