"""Write documents as an OCI image layout that is the same on every machine.

One layer for each group-version, as canonical JSON and uncompressed: what gzip and zstd make differs with
their version. No time, host, user or version of specmux is in it, and equal documents are one blob.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import orjson

from specmux_aggregator.backend_sources.oci_layout import (
    DOCUMENT_TYPE,
    GROUP_VERSION,
    HASH,
    INDEX_TYPE,
    MANIFEST_TYPE,
    METADATA_MAX,
    SNAPSHOT_TYPE,
    TAG,
    TITLE,
)
from specmux_aggregator.folders import read_at_most
from specmux_cache.whole_files import open_replacement
from specmux_converters.counted_nouns import counted
from specmux_converters.document import Document, canonical, content_hash, parse
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_values import mapping, objects
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.command_line.output_files import file_of, replace_file
from specmux_tools.sources.input import refusals
from specmux_tools.sources.source import FileRefused

TAR: Final = ".tar"
_EMPTY: Final = b"{}"
"""The configuration of an artifact that has none (image-spec 1.1: manifest.md)."""
_EMPTY_TYPE: Final = "application/vnd.oci.empty.v1+json"
_LAYOUT: Final = b'{"imageLayoutVersion":"1.0.0"}'


@dataclass(frozen=True, slots=True)
class SnapshotImage:
    """A manifest and its blobs by their paths in a layout."""

    manifest: dict[str, Any]
    """Its descriptor."""
    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        return str(self.manifest["digest"])

    @property
    def size(self) -> int:
        """Bytes of all blobs."""
        return sum(map(len, self.files.values()))


def image_of(documents: Mapping[GroupVersion, Document]) -> SnapshotImage:
    """Raises FileRefused for more documents than a registry's manifest may list."""
    files: dict[str, bytes] = {}

    def describe(data: bytes, media_type: str) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    layers = []
    for key in sorted(documents):
        data = canonical(documents[key])
        annotations = {
            TITLE: file_of(Path(), key, ".json").as_posix(),
            GROUP_VERSION: key,
            HASH: content_hash(data),
        }
        layers.append(describe(data, DOCUMENT_TYPE) | {"annotations": annotations})
    manifest = canonical({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "artifactType": SNAPSHOT_TYPE,
        "config": describe(_EMPTY, _EMPTY_TYPE),
        "layers": layers,
    })  # fmt: skip
    if len(manifest) > METADATA_MAX:
        raise FileRefused("", f"{counted(len(layers), 'document')}: more than a manifest may list")
    return SnapshotImage(describe(manifest, MANIFEST_TYPE) | {"artifactType": SNAPSHOT_TYPE}, files)


def write_image(image: SnapshotImage, out: Path, *, tag: str) -> None:
    """A tar, or a folder whose other tags stay and to which only new blobs are written, the index last.

    Raises FileRefused.
    """
    tagged = image.manifest | {"annotations": {TAG: tag}}
    if out.suffix == TAR:
        with refusals(out):
            out.parent.mkdir(parents=True, exist_ok=True)
            with (
                open_replacement(out) as file,
                tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar,
            ):
                for name, data in (*_heads([tagged]), *sorted(image.files.items())):
                    member = tarfile.TarInfo(name)
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        return
    with _claim(out):
        others = [each for each in _manifests_in(out) if mapping(each.get("annotations")).get(TAG) != tag]
        for name, data in (*image.files.items(), *_heads([*others, tagged])):
            replace_file(out / name, data)


@contextmanager
def _claim(folder: Path) -> Iterator[None]:
    """Make the folder, and wait for others that write to it: their tag would be lost. Raises FileRefused."""
    with refusals(folder):
        with suppress(FileExistsError):
            folder.mkdir(parents=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _heads(manifests: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, bytes], ...]:
    ordered = sorted(manifests, key=lambda each: orjson.dumps(each, option=orjson.OPT_SORT_KEYS))
    index = canonical({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": ordered})
    return ("oci-layout", _LAYOUT), ("index.json", index)


def _manifests_in(folder: Path) -> list[dict[str, Any]]:
    """The manifests of a layout; none of an empty folder. Raises FileRefused."""
    with refusals(folder):
        if not any(folder.iterdir()):
            return []
    with refusals(folder / "index.json"):
        if not (folder / "oci-layout").is_file():
            raise FileRefused(
                folder, "has other files than an OCI image layout; name a new folder, or a .tar"
            )
        return objects(parse(read_at_most(folder / "index.json", METADATA_MAX)).get("manifests"))
