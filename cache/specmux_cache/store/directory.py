"""The store's directory: ownership, marker files, reserved space, locks between processes, which the kernel
releases when their holder dies.

Invariant: a directory that is refused is unchanged.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from specmux_cache.errors import StoreUnavailable
from specmux_cache.store.bodies import open_file
from specmux_cache.store.database import INDEX_FILE, UNTOUCHED, uri_of
from specmux_converters.errors import cut

VERSION: Final = 1
VERSION_FILE: Final = "version"
VERSION_TEXT: Final = "specmux-cache {}\n"
TAG_FILE: Final = "CACHEDIR.TAG"
TAG_TEXT: Final = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This directory holds a cache of specmux. It may be deleted at any time.\n"
    "# See https://bford.info/cachedir/\n"
)
RESERVE_FILE: Final = "reserve"
DAMAGED_FILE: Final = "damaged.db"
"""An unreadable index, kept for diagnosis."""
OLD_RESULTS: Final = "checks"
"""Folder of results of ``specmux check`` until 0.1: it could be there before the store was."""
_FOREIGN: Final = "not empty, and not a cache of specmux: empty it, or name another folder"
_OLD_RESULT: Final = re.compile(r"\.?[0-9a-f]{64}\.json.*")
POLL: Final = 0.005  # seconds


def prepare(directory: Path) -> None:
    """Make the directory a store, with mode 0700. Raises StoreUnavailable."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_foreign(directory)
        _refuse_version(directory)
        if stat.S_IMODE(directory.stat().st_mode) != 0o700:
            directory.chmod(0o700)
        _write_once(directory / TAG_FILE, TAG_TEXT)
        _write_once(directory / VERSION_FILE, VERSION_TEXT.format(VERSION))
        _remove_old_results(directory / OLD_RESULTS)
    except OSError as error:
        raise StoreUnavailable(cut(error.strerror or str(error)), directory=str(directory)) from error


def is_read_only(directory: Path) -> bool:
    """True for an existing store that cannot be written to, such as one in an image."""
    index = directory / INDEX_FILE
    return index.is_file() and not (os.access(directory, os.W_OK) and os.access(index, os.W_OK))


def accept_read_only(directory: Path) -> None:
    """Raises StoreUnavailable for a directory that is not a store, or that others may write to."""
    try:
        _refuse_foreign(directory, is_read_only=True)
        _refuse_version(directory)
    except OSError as error:
        raise StoreUnavailable(cut(error.strerror or str(error)), directory=str(directory)) from error


def fill_reserve(directory: Path, size: int) -> None:
    """Allocate the reserve again; does nothing on a full disk."""
    path = directory / RESERVE_FILE
    with contextlib.suppress(OSError):
        if path.lstat().st_blocks * 512 >= size:
            return
    with contextlib.suppress(OSError):
        descriptor = open_file(path, os.O_WRONLY | os.O_CREAT)
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError:
            os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)


def release_reserve(directory: Path) -> bool:
    """Release the reserve; returns whether there was one."""
    try:
        (directory / RESERVE_FILE).unlink()
    except OSError:
        return False
    return True


def _refuse_foreign(directory: Path, *, is_read_only: bool = False) -> None:
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise StoreUnavailable("not a directory of its own (a symlink or a file)", directory=str(directory))
    # Files in an image belong to root, who can read everything of a process anyway.
    is_baked = is_read_only and status.st_uid == 0 and not status.st_mode & 0o022
    if status.st_uid != os.geteuid() and not is_baked:
        raise StoreUnavailable("belongs to another user", directory=str(directory))
    for name in ("bodies", "tmp"):
        if (directory / name).is_symlink():
            raise StoreUnavailable(f"its {name} is a symlink", directory=str(directory))


def _refuse_version(directory: Path) -> None:
    """Check the version file; a directory without one is accepted only if it is empty or partially created by
    this package."""
    text = _version_text(directory)
    if text is None:
        is_foreign = not all(_is_ours(path) for path in directory.iterdir())
        # Another process may have finished creating it meanwhile.
        text = _version_text(directory)
        if text is None and is_foreign and not _is_marked(directory):
            raise StoreUnavailable(_FOREIGN, directory=str(directory))
    if text is None:
        return
    name, _, number = text.strip().partition(" ")
    if name != "specmux-cache" or not number.isdecimal():
        if not _is_marked(directory):
            raise StoreUnavailable("its version file is not one of specmux", directory=str(directory))
        # A damaged byte. A newer index states its version itself.
        _forget_version(directory)
    elif int(number) > VERSION:
        if not _is_marked(directory) or _is_newer(directory / INDEX_FILE):
            raise StoreUnavailable(f"written by a newer version ({cut(number)})", directory=str(directory))
        # A digit with a flipped bit: a newer layout has a newer index as well.
        _forget_version(directory)


def _forget_version(directory: Path) -> None:
    with contextlib.suppress(OSError):  # a read-only store keeps its damaged file
        (directory / VERSION_FILE).unlink()


def _is_newer(index: Path) -> bool:
    """True if the index is newer, or cannot be read. It and its log remain unchanged."""
    try:
        with contextlib.closing(sqlite3.connect(f"{uri_of(index)}{UNTOUCHED}", uri=True)) as it:
            [(version,)] = it.execute("PRAGMA user_version")
    except sqlite3.Error:
        return True
    return bool(version > VERSION)


def _is_marked(directory: Path) -> bool:
    """True if the tag is this package's and there is an index, whatever the version file says."""
    try:
        is_tagged = _read_text(directory / TAG_FILE) == TAG_TEXT
        # Do not open it: closing it would drop the locks that SQLite holds in this process.
        return is_tagged and stat.S_ISREG((directory / INDEX_FILE).lstat().st_mode)
    except OSError:
        return False


def _version_text(directory: Path) -> str | None:
    try:
        return _read_text(directory / VERSION_FILE)
    except FileNotFoundError:
        return None


def _is_ours(path: Path) -> bool:
    if path.name == OLD_RESULTS:
        return stat.S_ISDIR(path.lstat().st_mode) and all(map(_is_old_result, path.iterdir()))
    return path.name in {TAG_FILE, "lock"} or path.name.startswith((f"{TAG_FILE}.", f"{VERSION_FILE}."))


def _is_old_result(path: Path) -> bool:
    return _OLD_RESULT.fullmatch(path.name) is not None


def _remove_old_results(folder: Path) -> None:
    """Nobody reads them, and they would count as room of the store for ever."""
    if folder.is_symlink() or not folder.is_dir():
        return
    with contextlib.suppress(OSError):
        for path in filter(_is_old_result, folder.iterdir()):
            path.unlink(missing_ok=True)
        folder.rmdir()


def _read_text(path: Path) -> str:
    with os.fdopen(open_file(path, os.O_RDONLY), encoding="ascii", errors="replace") as file:
        return file.read(256)


def _write_once(path: Path, text: str) -> None:
    if path.exists():
        return
    beside = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    beside.replace(path)


@contextmanager
def hold_lock(path: Path, *, timeout: float) -> Iterator[bool]:
    """Whether the lock was acquired within ``timeout`` seconds; 0 tries once. Raises OSError.

    Also excludes other holders in the same process: the lock belongs to the open file.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        yield _acquire_lock(descriptor, time.monotonic() + timeout)
    finally:
        os.close(descriptor)


def _acquire_lock(descriptor: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL)
        else:
            return True
