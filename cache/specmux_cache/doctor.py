"""Check a cache directory and a server for common problems, one by one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from specmux_cache.errors import CacheError, StoreError
from specmux_cache.reading.options import CacheOptions
from specmux_cache.store.directory import hold_lock
from specmux_cache.store.disk_store import DiskStore
from specmux_cache.sync import SchemaCache
from specmux_converters.counted_nouns import counted, size
from specmux_converters.lazy.dataclasses import dataclass

NETWORK_FILE_SYSTEMS: Final = frozenset(
    {"9p", "afs", "ceph", "cifs", "fuse.sshfs", "lustre", "nfs", "nfs4", "smb3"}
)
"""File systems on which locks and the index's shared memory are unreliable."""


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check."""

    subject: Literal["directory", "space", "locks", "file system", "server"]
    is_good: bool
    detail: str


def examine(directory: Path, server: str | None) -> list[DoctorFinding]:
    """Findings about the directory, and about the server if one is given."""
    findings = list(_examine_directory(directory))
    if server is not None:
        findings.append(_examine_server(server))
    return findings


def _examine_directory(directory: Path) -> Iterator[DoctorFinding]:
    try:
        with DiskStore.open(directory) as store:
            stats, limits = store.stats(), store.limits
            entries = counted(stats.entries, "entry")
            yield DoctorFinding("directory", True, f"{directory}: {entries}, {size(stats.bytes_used)}")
            yield _locks(store.directory)
    except StoreError as error:
        yield DoctorFinding("directory", False, str(error))
        return
    free, needed = shutil.disk_usage(directory).free, limits.high_bytes - stats.bytes_used
    yield DoctorFinding(
        "space", free >= needed, f"{size(free)} free, the cache may grow by {size(max(needed, 0))}"
    )
    kind = _file_system(directory)
    yield DoctorFinding("file system", kind not in NETWORK_FILE_SYSTEMS, kind or "unknown")


def _locks(directory: Path) -> DoctorFinding:
    with tempfile.TemporaryDirectory(dir=directory, prefix="doctor-") as own:
        path = Path(own, "lock")
        with hold_lock(path, timeout=1), hold_lock(path, timeout=0) as got_twice:
            return DoctorFinding("locks", not got_twice, "not exclusive" if got_twice else "exclusive")


def _file_system(directory: Path) -> str:
    """Its type by /proc/self/mounts; "" if there is none."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    resolved = directory.resolve()
    found = [
        (len(point), kind)
        for _, point, kind, *_ in (line.split(" ") for line in mounts)
        if resolved.is_relative_to(point)
    ]
    return max(found)[1] if found else ""


def _examine_server(server: str) -> DoctorFinding:
    try:
        with SchemaCache(server, CacheOptions(directory=None, timeout=10.0)) as client:
            paths, again = client.paths(), client.paths()
    except (CacheError, ValueError) as error:
        return DoctorFinding("server", False, str(error))
    hashed = sum(bool(document.hash) for document in paths.documents.values())
    detail = f"{counted(len(paths.documents), 'document')}, {hashed} with a hash"
    if paths.refused:
        detail += f", {len(paths.refused)} with a URL that is not the server's"
    if not again.from_cache:
        detail += "; its root has no usable ETag and is transferred every time"
    return DoctorFinding("server", not paths.refused, detail)
