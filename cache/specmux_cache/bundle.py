"""A cache in one file, to be carried to where the server cannot be reached.

A zip: ``bundle.json`` lists the entries, ``bodies/<sha256>`` holds each body once. Names in it are never used
as paths, every body is read up to the size that is listed for it, and is taken only when its digest is the
listed one. The same entries give the same bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from specmux_cache.errors import BundleError
from specmux_cache.http.responses import Entry, held_from, metadata_of
from specmux_cache.store.bodies import digest_of, is_digest
from specmux_cache.store.keys import Key
from specmux_cache.store.rows import Digest
from specmux_converters.errors import cut

VERSION: Final = 1
MANIFEST: Final = "bundle.json"
MANIFEST_MAX: Final = 64 * 1024 * 1024
"""Bytes of a manifest; a longer one is refused."""
EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can say, for all members."""


@dataclass(frozen=True, slots=True)
class Packed:
    """What a bundle holds: entries of one server. Their keys name no partition: that stays at home."""

    server: str
    entries: tuple[Entry, ...]


def write_bundle(path: Path, server: str, entries: Iterable[Entry]) -> int:
    """Write and rename into place, for its owner alone; how many entries. Raises BundleError."""
    listed, bodies = [], {}
    for entry in sorted(
        entries, key=lambda entry: (entry.key.group_version, entry.key.media_type, entry.key.hash)
    ):
        bodies[entry.digest] = entry.body
        listed.append(
            {
                "group_version": entry.key.group_version,
                "hash": entry.key.hash,
                "media_type": entry.key.media_type,
                "digest": entry.digest,
                "size": len(entry.body),
                "metadata": metadata_of(entry.held),
            }
        )
    manifest = {"bundle": "specmux", "version": VERSION, "server": server, "entries": listed}
    members = [(MANIFEST, json.dumps(manifest, indent=1).encode())]
    members += [(f"bodies/{digest}", body) for digest, body in sorted(bodies.items())]
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with (
                os.fdopen(descriptor, "wb") as file,
                zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
            ):
                for name, data in members:
                    archive.writestr(zipfile.ZipInfo(name, EPOCH), data, zipfile.ZIP_DEFLATED)
            beside.replace(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                beside.unlink()
    except OSError as error:
        raise BundleError(cut(error.strerror or str(error)), path=str(path)) from error
    return len(listed)


def read_bundle(path: Path, *, max_body_bytes: int) -> Packed:
    """All of it, verified. Raises BundleError, and then nothing of it should be used."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(_read(archive, MANIFEST, MANIFEST_MAX))
            if not isinstance(manifest, dict) or manifest.get("bundle") != "specmux":
                raise ValueError("not a bundle of specmux")
            if manifest.get("version") != VERSION:
                raise ValueError("written by another version")
            return Packed(
                str(manifest["server"]), tuple(_entries(archive, manifest["entries"], max_body_bytes))
            )
    except OSError as error:
        raise BundleError(cut(error.strerror or str(error)), path=str(path)) from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise BundleError("not a zip, or a damaged one", path=str(path)) from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BundleError(cut(str(error)), path=str(path)) from error


def _entries(archive: zipfile.ZipFile, listed: Any, max_body_bytes: int) -> Iterator[Entry]:
    for item in listed:
        digest, size = str(item["digest"]), int(item["size"])
        held = held_from(item["metadata"])
        if not is_digest(digest) or held is None or not 0 <= size <= max_body_bytes:
            raise ValueError("an entry is not as one is written")
        body = _read(archive, f"bodies/{digest}", size)
        if len(body) != size or digest_of(body) != digest:
            raise ValueError("a body is not what its digest says")
        key = Key("", "", str(item["group_version"]), str(item["hash"]), str(item["media_type"]))
        yield Entry(key, held, body, Digest(digest))


def _read(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    with archive.open(name) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"{name} is larger than it says")
    return data
