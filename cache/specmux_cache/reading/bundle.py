"""A cache in a single file, for use where the server cannot be reached.

A zip: ``bundle.json`` lists the entries, ``bodies/<sha256>`` contains each body once. Names in it are never
used as paths. Every body is read once, up to its listed size, and accepted only if its digest matches; all
bodies together are bounded, since a zip of kilobytes can contain gigabytes. Equal entries give equal bytes.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from specmux_cache.errors import BundleError
from specmux_cache.reading.entry_store import Entry, EntryStore, metadata_of, read_stored_head
from specmux_cache.store.bodies import digest_of
from specmux_cache.store.keys import Key
from specmux_cache.store.limits import StoreLimits
from specmux_cache.store.rows import Digest, is_digest
from specmux_cache.whole_files import open_replacement
from specmux_converters.errors import cut
from specmux_converters.json_text import may_have_more_values
from specmux_converters.lazy.dataclasses import dataclass

VERSION: Final = 1
MANIFEST: Final = "bundle.json"
MANIFEST_MAX: Final = 64 * 1024 * 1024
"""Bytes of the largest manifest."""
VALUES_MAX: Final = 1_000_000
"""Most JSON values of a manifest: over twenty thousand entries."""
BUNDLE_TIMES: Final = 4
"""Size of a bundle's uncompressed bodies, at most, as a multiple of the compressed store."""
EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can state, used for all members."""


@dataclass(frozen=True, slots=True)
class BundleContents:
    """The entries of one server. Their keys have no partition, which remains local."""

    server: str
    entries: tuple[Entry, ...]


def write_bundle(path: Path, server: str, entries: Iterable[Entry]) -> int:
    """Write and rename into place, readable only by the owner; returns the number of entries. Raises
    BundleError."""
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
    try:
        with (
            open_replacement(path, mode=0o600) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for name, data in members:
                archive.writestr(zipfile.ZipInfo(name, EPOCH), data, zipfile.ZIP_DEFLATED)
    except OSError as error:
        raise BundleError(cut(error.strerror or str(error)), path=str(path)) from error
    return len(listed)


def read_bundle(path: Path, *, max_body_bytes: int, max_bytes: int) -> BundleContents:
    """The verified content. ``max_bytes``: of all bodies, uncompressed. Raises BundleError; nothing of the
    bundle should be used then."""
    try:
        with zipfile.ZipFile(path) as archive:
            text = _read_member(archive, MANIFEST, MANIFEST_MAX)
            if may_have_more_values(text, VALUES_MAX):
                raise ValueError(f"{MANIFEST} has more than {VALUES_MAX} values")
            manifest = json.loads(text)
            if not isinstance(manifest, dict) or manifest.get("bundle") != "specmux":
                raise ValueError("not a bundle of specmux")
            if manifest.get("version") != VERSION:
                raise ValueError("written by another version")
            bodies = _Bodies(archive, max_body_bytes=max_body_bytes, max_bytes=max_bytes)
            return BundleContents(str(manifest["server"]), tuple(_entries(manifest["entries"], bodies)))
    except OSError as error:
        raise BundleError(cut(error.strerror or str(error)), path=str(path)) from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise BundleError("not a zip, or a damaged one", path=str(path)) from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BundleError(cut(str(error)), path=str(path)) from error


class _Bodies:
    """The bodies of one bundle, each read once."""

    def __init__(self, archive: zipfile.ZipFile, *, max_body_bytes: int, max_bytes: int) -> None:
        self._archive = archive
        self._max_body_bytes = max_body_bytes
        self._left = max_bytes
        self._read: dict[str, bytes] = {}

    def get(self, digest: str, size: int) -> bytes:
        """Raises ValueError."""
        body = self._read.get(digest)
        if body is None:
            if not is_digest(digest) or not 0 <= size <= self._max_body_bytes:
                raise ValueError("an entry is not as one is written")
            if size > self._left:
                raise ValueError("its bodies are larger, unpacked, than this cache may become")
            self._left -= size
            body = self._read[digest] = _read_member(self._archive, f"bodies/{digest}", size)
            if digest_of(body) != digest:
                raise ValueError("a body is not what its digest says")
        if len(body) != size:
            raise ValueError("a body is not as large as its entry says")
        return body


def _entries(listed: Any, bodies: _Bodies) -> Iterator[Entry]:
    for item in listed:
        digest, size = str(item["digest"]), int(item["size"])
        held = read_stored_head(item["metadata"])
        if held is None:
            raise ValueError("an entry is not as one is written")
        body = bodies.get(digest, size)
        key = Key("", "", str(item["group_version"]), str(item["hash"]), str(item["media_type"]))
        yield Entry(key, held, body, Digest(digest))


def _read_member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    with archive.open(name) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"{name} is larger than it says")
    return data


async def export_bundle(path: Path, server: str, entry_store: EntryStore) -> int:
    """Write the current entries of a server; returns their number. Raises BundleError."""
    current = [row.key for row in await entry_store.rows() if not row.superseded]
    entries = [entry for key in current if (entry := await entry_store.get(key)) is not None]
    return await entry_store.calls.run(write_bundle, path, server, entries)


async def import_bundle(path: Path, entry_store: EntryStore, *, limits: StoreLimits) -> int:
    """Store the entries of a bundle; returns their number. Raises BundleError."""
    packed = await entry_store.calls.run(
        partial(
            read_bundle,
            path,
            max_body_bytes=limits.max_body_bytes,
            max_bytes=BUNDLE_TIMES * limits.high_bytes,
        )
    )
    stored = 0
    for entry in packed.entries:
        key = entry_store.key(entry.key.group_version, entry.key.hash, entry.key.media_type)
        held = entry.held
        if packed.server != key.server:  # a dictionary is its own server's alone (RFC 9842 9.3.1)
            own = tuple(pair for pair in held.fields if pair[0] != "use-as-dictionary")
            held = replace(held, fields=own)
        stored += await entry_store.put(key, entry.body, held)
    return stored
