"""Compare the files on disk with the index, and remove what does not match.

Unlike diskcache's ``check``, safe beside writers: a fault is checked again under the lock that removes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, Literal

from specmux_cache.errors import StoreDamaged
from specmux_cache.store.compaction import BATCH, LEFTOVER_SECONDS
from specmux_cache.store.contents import Contents
from specmux_cache.store.rows import key_range
from specmux_converters.errors import cut
from specmux_converters.lazy.dataclasses import dataclass

FAULTS: Final = {"row": "not what was stored", "body": "its body is missing or damaged"}


@dataclass(frozen=True, slots=True)
class StoreProblem:
    """A fault in the store."""

    kind: Literal["index", "row", "body", "orphan", "size"]
    detail: str
    is_fixed: bool = False


def verify(contents: Contents, *, fix: bool) -> tuple[StoreProblem, ...]:
    """Reads every body. Raises StoreError: StoreDamaged for an index that ``fix`` cannot repair."""
    return (
        *_index(contents, fix=fix),
        *_strangers(contents, fix=fix),
        *_entries(contents, fix=fix),
        *_orphans(contents, fix=fix),
        *_sizes(contents, fix=fix),
    )


def _index(contents: Contents, *, fix: bool) -> Iterator[StoreProblem]:
    problems = contents.index.problems()
    if problems and fix:
        contents.index.rebuild()
        if contents.index.problems():
            raise StoreDamaged("index: cannot be rebuilt", directory=str(contents.directory))
    for text in problems:
        yield StoreProblem("index", cut(text), is_fixed=fix)


def _strangers(contents: Contents, *, fix: bool) -> Iterator[StoreProblem]:
    with contents.index.database.transaction():
        rows = contents.index.strangers()
        if fix:
            contents.index.delete_rows(rows)
    if rows:
        yield StoreProblem("row", f"{len(rows)} rows that are neither an entry nor a body", is_fixed=fix)


def _entries(contents: Contents, *, fix: bool) -> Iterator[StoreProblem]:
    low, high = key_range()
    after = ""
    while page := contents.index.rows.page(low, high, after=after, with_body=True):
        after = page[-1].key
        for raw in page:
            if contents.is_whole(raw):
                continue
            fault = contents.fault_of(raw.key, remove=fix)
            if fault is not None:
                yield StoreProblem(fault, f"{cut(raw.key)}: {FAULTS[fault]}", is_fixed=fix)


def _orphans(contents: Contents, *, fix: bool) -> Iterator[StoreProblem]:
    old = time.time() - LEFTOVER_SECONDS
    files = contents.bodies.files()
    unknown = contents.index.unknown(
        [file.digest for file in files if file.digest and file.modified_at < old]
    )
    unnamed = contents.index.unnamed_bodies()
    if fix:
        for start in range(0, len(unknown), BATCH):
            contents.sweep(unknown[start : start + BATCH], begun_before=0.0)
        for start in range(0, len(unnamed), BATCH):
            contents.prune(unnamed[start : start + BATCH])
    for digest in (*unknown, *unnamed):
        yield StoreProblem("orphan", f"{digest}: no entry has this body", is_fixed=fix)


def _sizes(contents: Contents, *, fix: bool) -> Iterator[StoreProblem]:
    error = contents.index.correct_sum() if fix else contents.index.error_of_sum()
    if error:
        yield StoreProblem("size", f"the sum of the sizes is {error} bytes too large", is_fixed=fix)
