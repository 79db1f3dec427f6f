"""Restricts diskcache's columns to text and numbers.

CVE-2025-69872: diskcache unpickles what a row claims to be a pickle, and no release is fixed. This Disk never
reads pickles or files, whatever the row says.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Final

import diskcache

KNOWN_SETTINGS: Final = frozenset({*diskcache.core.DEFAULT_SETTINGS, *diskcache.core.METADATA})


class Tables(diskcache.Cache):  # type: ignore[misc]  # diskcache is untyped
    """diskcache's tables, indexes, triggers and settings, created on the given connection."""

    def __init__(
        self, directory: str, connection: Callable[[], sqlite3.Connection], settings: Mapping[str, object]
    ) -> None:
        self._connection = connection
        super().__init__(directory, disk=PlainDisk, **settings)

    @property
    def _con(self) -> sqlite3.Connection:
        """The connection on which diskcache executes."""
        return self._connection()

    def close(self) -> None:
        """Does nothing: diskcache closes and reopens while it initializes, in the middle of a transaction."""


class PlainDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache is untyped
    """Refuses everything that diskcache would pickle or store in a file of its own. Raises ValueError."""

    def put(self, key: object) -> tuple[object, bool]:
        return _plain(key), True

    def get(self, key: object, raw: object) -> object:
        if not raw:
            raise ValueError("a pickled key is refused")
        return _plain(key)

    def store(
        self, value: object, read: bool, key: object = diskcache.UNKNOWN
    ) -> tuple[int, int, None, object]:
        if read:
            raise ValueError("a file as value is refused")
        return 0, diskcache.core.MODE_RAW, None, _plain(value)

    def fetch(self, mode: int, filename: str | None, value: object, read: bool) -> object:
        if mode != diskcache.core.MODE_RAW or filename is not None or read:
            raise ValueError("only plain values are read from the index")
        return _plain(value)

    def filename(self, key: object = diskcache.UNKNOWN, value: object = diskcache.UNKNOWN) -> tuple[str, str]:
        raise ValueError("the index keeps no files")

    def remove(self, file_path: str) -> None:
        raise ValueError("the index keeps no files")


def _plain(value: object) -> object:
    if type(value) not in (str, int, float):
        raise ValueError(f"a {type(value).__name__} is refused: only text and numbers are kept in the index")
    return value
