"""Completions for shells: group-versions and kinds of all servers in the disk cache. Asks no server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from specmux_converters.group_versions import GroupVersion, join_group_version
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind

if TYPE_CHECKING:  # a completion of options imports no store
    from specmux_cache.store.disk_store import DiskStore
    from specmux_tools.explanation.field_path import Step


def complete_group_versions(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """``apps/v1`` is offered, and ``apis/apps/v1`` to who begins to type it."""
    stored = _read_names(context, lambda store: {row.key.group_version for row in store.rows()})
    keys = {key for key in stored if not key.startswith("/")}
    short = {key.split("/", 1)[1] for key in keys if key.startswith(("api/", "apis/"))}
    return sorted(
        name
        for name in short | (keys if incomplete.startswith("api") else set())
        if name.startswith(incomplete)
    )


def complete_kinds(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Plurals, short names and kinds of cached discovery; behind a dot the fields of the cached document."""
    if "." in incomplete:
        return sorted(_read_names(context, lambda store: _fields(store, incomplete)))
    names = _read_names(
        context, lambda store: {name for each in _discovered_kinds(store) for name in each.names}
    )
    return sorted(name for name in names if name.lower().startswith(incomplete.lower()))


def _fields(store: DiskStore, incomplete: str) -> set[str]:
    """``pods.spec.ho`` gives ``pods.spec.hostname`` and others: of the first document that has the field."""
    from specmux_tools.errors import SchemasError
    from specmux_tools.explanation.field_path import parse

    parent, _, begun = incomplete.rpartition(".")
    try:
        steps = parse(parent)
    except SchemasError:
        return set()
    for each in _discovered_kinds(store) if steps else ():
        if steps[0].name.lower() in (name.lower() for name in each.names):
            found = _fields_of(store, each, steps[1:])
            if found:
                return {f"{parent}.{name}" for name in found if name.lower().startswith(begun.lower())}
    return set()


def _fields_of(store: DiskStore, kind: _DiscoveredKind, steps: Sequence[Step]) -> set[str]:
    """The names below a field; none where no document that has it is stored as JSON."""
    import orjson

    from specmux_tools.errors import SchemasError
    from specmux_tools.explanation.tree import find, tree_of
    from specmux_tools.kinds import DocumentSet

    group = kind.kind.group.split(".") if kind.kind.group else []
    if group and [step.name for step in steps[: len(group)]] == group:
        steps = steps[len(group) :]
    for row in store.rows():
        if row.key.group_version != kind.group_version or (stored := store.get(row.key)) is None:
            continue
        with suppress(orjson.JSONDecodeError, SchemasError, TypeError, AttributeError):
            described = DocumentSet({kind.group_version: orjson.loads(stored.body)}).find(kind.kind)
            if described is not None:
                place = find(described.document, described.schema, steps)
                return {each.name for each in tree_of(described.document, place, depth=1).fields}
    return set()


@dataclass(frozen=True, slots=True)
class _DiscoveredKind:
    group_version: GroupVersion
    kind: GroupVersionKind
    names: tuple[str, ...]


def _discovered_kinds(store: DiskStore) -> list[_DiscoveredKind]:
    rows = [row for row in store.rows() if row.key.group_version in ("/api", "/apis")]
    bodies = [stored.body for row in rows if (stored := store.get(row.key)) is not None]
    return [each for body in bodies for each in _kinds_in(body)]


def _kinds_in(body: bytes) -> Iterator[_DiscoveredKind]:
    """The kinds of an aggregated discovery document (KEP-3352); none of any other."""
    import orjson

    try:
        document = orjson.loads(body)
        for group in document["items"]:
            name = group.get("metadata", {}).get("name", "")
            for version in group["versions"]:
                key = join_group_version(name, version["version"])
                for resource in version["resources"]:
                    kind = resource["responseKind"]["kind"]
                    names = (resource["resource"], kind, *(resource.get("shortNames") or ()))
                    yield _DiscoveredKind(key, GroupVersionKind(name, version["version"], kind), names)
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


def _read_names(context: click.Context, names: Callable[[DiskStore], set[str]]) -> set[str]:
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
