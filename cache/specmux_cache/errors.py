"""Everything this package raises.

CacheError
└── StoreError               the disk store
    ├── StoreUnavailable     the directory cannot be used at all; a client falls back to memory
    ├── StoreFull            this body was not stored: no room below the bound
    │   └── DiskFull         no room on the disk, or below a quota
    ├── StoreBusy            other writers held the index for longer than ``StoreLimits.busy_timeout``
    └── StoreDamaged         the index was unreadable; it has been set aside and the next call starts empty
"""

from __future__ import annotations

TEXT_MAX = 200
"""Characters of foreign text that an error repeats; the rest is cut, since it may reach a log."""


def cut(text: str) -> str:
    """Foreign text, printable and short enough for one log line."""
    shown = text[:TEXT_MAX].encode("unicode_escape").decode("ascii")
    return shown if len(text) <= TEXT_MAX else f"{shown}… ({len(text)} characters)"


class CacheError(Exception):
    """Root of the errors of this package."""


class StoreError(CacheError):
    """The disk store could not do what it was asked. ``directory`` is the store's."""

    def __init__(self, reason: str, *, directory: str) -> None:
        super().__init__(f"cache directory {cut(directory)}: {reason}")
        self.reason = reason
        self.directory = directory


class StoreUnavailable(StoreError):
    """Read-only, a symlink, someone else's, not a cache, or of a newer version. Nothing in it was changed."""


class StoreFull(StoreError):
    """The body was not stored; what was stored before is intact."""


class DiskFull(StoreFull):
    """The file system did not take what was written."""


class StoreBusy(StoreError):
    """The index stayed locked; nothing was changed."""


class StoreDamaged(StoreError):
    """The index was not readable as one."""
