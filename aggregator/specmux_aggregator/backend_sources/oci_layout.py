"""Read the documents of an OCI image layout: a folder, or a tar of one (image-spec 1.1: image-layout.md).

``index.json`` lists manifests, a manifest its layers, each with digest and size; a layer is one document.
Only digests become paths, so neither a title nor a name in a tar leads anywhere: a tar is looked up and never
unpacked. Links in a folder are followed, since what they lead to has to have the digest, too. Every size is
checked before memory is taken, and a blob is used only if its digest is right.

Layouts of other tools are read as well: nested indexes, tags written as whole references, layers without our
annotations or with gzip or zstd, signatures beside the snapshot. ``LayoutFiles`` shows one as a folder.
"""

from __future__ import annotations

import errno
import hashlib
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from specmux_aggregator.errors import UnreadableLayout
from specmux_aggregator.folders import KEY, LAYOUT, group_version_of_file, read_at_most
from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Cause, Failure
from specmux_converters.counted_nouns import list_first
from specmux_converters.document import DEFAULT_LIMITS, Document, Limits, parse
from specmux_converters.errors import ConverterError, cut
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_values import array, mapping, text
from specmux_converters.lazy.patterns import pattern

if TYPE_CHECKING:  # commands read a layout without an event loop
    from specmux_aggregator.backend_sources.files import Fingerprint

INDEX_TYPE: Final = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE: Final = "application/vnd.oci.image.manifest.v1+json"
SNAPSHOT_TYPE: Final = "application/vnd.specmux.snapshot.v1"
DOCUMENT_TYPE: Final = "application/vnd.oai.openapi+json"
TITLE: Final = "org.opencontainers.image.title"
TAG: Final = "org.opencontainers.image.ref.name"
GROUP_VERSION: Final = "specmux.group-version"
HASH: Final = "specmux.hash"
"""Annotation for whoever compares a layer with ``/openapi/v3``; nothing is read off it."""

METADATA_MAX: Final = 4 * 1024 * 1024
"""Bytes of an index or a manifest: what registries take."""
MANIFESTS_MAX: Final = 1000
"""Manifests and nested indexes of a layout that are listed."""
METADATA_TOTAL_MAX: Final = 16 * METADATA_MAX
LAYERS_MAX: Final = 10_000
MEMBERS_MAX: Final = 2 * LAYERS_MAX
"""Members of a tar."""

TAG_SYNTAX: Final = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
_DIGEST_SYNTAX: Final = r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}"
_WORD: Final = pattern(rf"(?s)(.+?)(?::({TAG_SYNTAX}))?(?:@({_DIGEST_SYNTAX}))?")
_DIGEST: Final = pattern(_DIGEST_SYNTAX)
_CODINGS: Final = ((b"\x1f\x8b", Coding.GZIP), (b"\x28\xb5\x2f\xfd", Coding.ZSTD))
_BLOCK: Final = 512
"""Bytes of a block of a tar."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A blob by its digest and size (image-spec 1.1: descriptor.md)."""

    digest: str
    size: int
    media_type: str
    annotations: Mapping[str, Any]

    @property
    def path(self) -> str:
        return f"blobs/{self.digest.replace(':', '/')}"


@dataclass(frozen=True, slots=True)
class LayoutDocument:
    """A document of a snapshot. ``name``: as a file below a folder would be called."""

    name: str
    group_version: GroupVersion | None
    blob: Descriptor


class _Files(Protocol):
    def read(self, name: str, most: int) -> bytes:
        """``most`` bytes and one more of a larger file. Raises OSError."""
        ...

    def modification_time(self, name: str) -> int:
        """Nanoseconds. Raises OSError."""
        ...


class Layout:
    """The layout that ``oci:PATH[:TAG|@DIGEST]`` names, as it is now."""

    def __init__(self, word: str) -> None:
        """Raises UnreadableLayout. Blocks, as the methods do."""
        self.where = word
        self._left = METADATA_TOTAL_MAX
        place = ""
        try:
            path, self._tag, self._digest = _parse_word(word)
            self._files: _Files
            if path.is_dir():
                self._files, place = _Folder(path), "index.json"
            else:
                self._files = _Tar(path)
            index = self._files.read("index.json", METADATA_MAX)
        except FileNotFoundError:
            self._refuse("", _reason_for_absence(path))
        except OSError as error:
            self._refuse(place, error.strerror or "cannot be read")
        except ValueError as error:
            self._refuse("", f"neither a folder nor a tar with an OCI image layout: {error}")
        self._index = self._parse(index, "index.json")

    def documents(self) -> tuple[LayoutDocument, ...]:
        """The documents of the snapshot that the word names, by their names. Raises UnreadableLayout."""
        digest, manifest = self._manifest()
        found: dict[str, LayoutDocument] = {}
        for layer in self._descriptors(manifest, "layers", digest, LAYERS_MAX):
            document = _document_of(layer)
            if ".tar" in layer.media_type and TITLE not in layer.annotations:
                self._refuse(digest, "a container image, and no snapshot of documents")
            if found.setdefault(document.name, document) is not document:
                self._refuse(digest, f"two layers are {cut(document.name)}")
        if not found:
            self._refuse(digest, "no document in it")
        return tuple(found[name] for name in sorted(found))

    def read(self, document: LayoutDocument, *, max_bytes: int = DEFAULT_LIMITS.max_bytes) -> bytes:
        """The verified bytes, without gzip or zstd. Raises UnreadableLayout."""
        data = self._blob(document.blob, max_bytes, document.name)
        coding = next((each for magic, each in _CODINGS if data.startswith(magic)), Coding.IDENTITY)
        try:
            return decode_body(data, coding, max_bytes=max_bytes)
        except (BadCoding, TooLarge) as error:
            self._refuse(cut(document.name), str(error))

    def modification_time(self, document: LayoutDocument) -> int:
        """Nanoseconds of the file with its bytes, which change when it is repaired; 0 if there is
        none."""
        try:
            return self._files.modification_time(document.blob.path)
        except OSError:
            return 0

    def _manifest(self) -> tuple[str, Document]:
        """The manifest that is meant, with its digest. Signatures that lie beside it refer to it as their
        subject, or are of another type."""
        found, tags = self._manifests()
        alone = {digest: each for digest, each in found.items() if "subject" not in each} or found
        ours = {digest: each for digest, each in alone.items() if each.get("artifactType") == SNAPSHOT_TYPE}
        chosen, wanted = ours or alone, self._digest or self._tag
        if len(chosen) != 1:
            told = f"no manifest is {wanted}" if wanted else "lists no manifest"
            if chosen:
                told = f"has {len(chosen)} manifests: name one as oci:PATH:TAG or oci:PATH@DIGEST"
            self._refuse("", told + (f"; it has the tags {list_first(tags, 10)}" if tags else ""))
        return next(iter(chosen.items()))

    def _manifests(self) -> tuple[dict[str, Document], list[str]]:
        """Those that the word can mean, by their digests, and the tags of the index."""
        found: dict[str, Document] = {}
        waiting = [(each, self._is_meant(each)) for each in self._list(self._index, "index.json")]
        tags = sorted({cut(tag) for each, _ in waiting if (tag := text(each.annotations.get(TAG)))})
        known = len(waiting)
        while waiting:
            blob, is_meant = waiting.pop()
            if not is_meant and not (self._digest and blob.media_type == INDEX_TYPE):
                continue
            self._left -= blob.size
            if self._left < 0:
                self._refuse("index.json", f"its manifests have more than {METADATA_TOTAL_MAX} bytes")
            document = self._parse(self._blob(blob, METADATA_MAX, "a manifest"), blob.digest)
            if "manifests" not in document:
                found[blob.digest] = document
                continue
            below = self._list(document, blob.digest)
            known += len(below)
            if known > MANIFESTS_MAX:
                self._refuse("index.json", f"more than {MANIFESTS_MAX} manifests")
            waiting += [(each, is_meant or self._is_meant(each)) for each in below]
        return found, tags

    def _is_meant(self, blob: Descriptor) -> bool:
        if self._digest:
            return blob.digest == self._digest
        tag = text(blob.annotations.get(TAG))
        return not self._tag or tag == self._tag or tag.endswith(f":{self._tag}")

    def _list(self, index: Document, where: str) -> list[Descriptor]:
        return self._descriptors(index, "manifests", where, MANIFESTS_MAX)

    def _descriptors(self, document: Document, member: str, where: str, most: int) -> list[Descriptor]:
        listed = array(document.get(member))
        if len(listed) > most:
            self._refuse(where, f"more than {most} {member}")
        found = []
        for number, each in enumerate(map(mapping, listed)):
            digest, size = text(each.get("digest")), each.get("size")
            if not _DIGEST.fullmatch(digest) or type(size) is not int or size < 0:
                self._refuse(where, f"/{member}/{number} has no digest (sha256 or sha512) and size")
            found.append(
                Descriptor(digest, size, text(each.get("mediaType")), mapping(each.get("annotations")))
            )
        return found

    def _blob(self, blob: Descriptor, most: int, name: str) -> bytes:
        where = f"{cut(name)} ({blob.path})"
        if blob.size > most:
            self._refuse(where, f"{blob.size} bytes, more than the {most} allowed")
        try:
            data = self._files.read(blob.path, blob.size)
        except OSError as error:
            self._refuse(where, error.strerror or "cannot be read")
        if len(data) != blob.size:
            self._refuse(
                where, f"has {'less' if len(data) < blob.size else 'more'} than its {blob.size} bytes"
            )
        algorithm, _, hexadecimal = blob.digest.partition(":")
        if hashlib.new(algorithm, data).hexdigest() != hexadecimal:
            self._refuse(where, "its bytes do not have its digest")
        return data

    def _parse(self, data: bytes, where: str) -> Document:
        try:
            return parse(data, limits=Limits(max_bytes=METADATA_MAX, max_depth=20, max_values=500_000))
        except ConverterError as error:
            self._refuse(where, error.reason)

    def _refuse(self, place: str, reason: str) -> NoReturn:
        raise UnreadableLayout(f"{cut(self.where)}: {f'{place}: ' if place else ''}{reason}")


def _parse_word(word: str) -> tuple[Path, str, str]:
    """Path, tag and digest; a path that exists is one, whatever it looks like. Raises UnreadableLayout, and
    OSError where nobody can tell."""
    rest = word.removeprefix(LAYOUT)
    found = _WORD.fullmatch(rest)
    if found is None:
        raise UnreadableLayout(f"{cut(word)}: must be written as oci:PATH, oci:PATH:TAG or oci:PATH@sha256:…")
    if Path(rest).exists():
        return Path(rest), "", ""
    path, tag, digest = found.groups("")
    return Path(path), tag, digest


def _reason_for_absence(path: Path) -> str:
    if path.exists():
        return "no OCI image layout: it has no index.json"
    for sign in ":@":  # a tag or a digest with a typing error is read as part of the path
        head = str(path).partition(sign)[0]
        if head and Path(head).exists():
            shown = f"{LAYOUT}{cut(head)}"
            return f"No such file; a tag is {shown}:TAG, a digest {shown}@sha256:… with 64 digits"
    return "No such file or directory"


def _document_of(layer: Descriptor) -> LayoutDocument:
    key = text(layer.annotations.get(GROUP_VERSION))
    title = text(layer.annotations.get(TITLE)).removesuffix(".gz").removesuffix(".zst")
    name = f"{key}.json" if KEY.fullmatch(key) else title or layer.digest.partition(":")[2]
    return LayoutDocument(name, group_version_of_file(name), layer)


@dataclass(frozen=True, slots=True)
class _Folder:
    path: Path

    def read(self, name: str, most: int) -> bytes:
        path = self.path / name
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(0, "not a file")
        return read_at_most(path, most)

    def modification_time(self, name: str) -> int:
        return (self.path / name).stat().st_mtime_ns


class _Tar:
    """A tar without compression. Not by ``tarfile``, which reads extended headers of any size into memory: no
    name of a layout is so long that it needs one."""

    def __init__(self, path: Path) -> None:
        """Raises OSError; ValueError for what is no tar."""
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(0, "neither a folder nor a tar")
        self._path = path
        self._members = dict(self._list_members())

    def read(self, name: str, most: int) -> bytes:
        if name not in self._members:
            raise FileNotFoundError(0, "not in the tar")
        at, size = self._members[name]
        with self._path.open("rb") as file:
            file.seek(at)
            return file.read(min(size, most + 1))

    def modification_time(self, name: str) -> int:
        return self._path.stat().st_mtime_ns

    def _list_members(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Names of regular files, with the place of their bytes."""
        with self._path.open("rb") as file:
            for _ in range(MEMBERS_MAX):
                head = file.read(_BLOCK)
                if not head.strip(b"\0"):
                    return
                summed = sum(head) - sum(head[148:156]) + 8 * ord(" ")
                if len(head) < _BLOCK or _octal(head[148:156]) != summed:
                    raise ValueError("a damaged header, or compressed")
                size = _octal(head[124:136])
                if head[156:157] in b"0\0":
                    names = [head[:100]]
                    if head[257:263] == b"ustar\0" and head[345:500].strip(b"\0"):
                        names.insert(0, head[345:500])
                    name = b"/".join(each.partition(b"\0")[0] for each in names)
                    yield name.decode("utf-8", "replace").removeprefix("./"), (file.tell(), size)
                file.seek(-(-size // _BLOCK) * _BLOCK, 1)
        raise ValueError(f"more than {MEMBERS_MAX} members")


def _octal(field: bytes) -> int:
    digits = field.strip(b" \0")
    if not digits or digits.strip(b"01234567"):
        raise ValueError("a damaged header, or compressed")
    return int(digits, 8)


class LayoutFiles:
    """The documents of the manifest that the word names now. One is read again when its blob is another, or
    was written again."""

    def __init__(self, word: Path, *, max_files: int, max_bytes: int) -> None:
        self._word = str(word)
        self._max_files = max_files
        self._max_bytes = max_bytes
        self._documents: dict[str, tuple[Layout, LayoutDocument]] = {}

    async def scan(self) -> dict[str, Fingerprint] | Failure:
        from asyncio import to_thread

        return await to_thread(self._scan)

    def read(self, name: str) -> bytes:
        """The verified bytes. Raises OSError; blocks."""
        layout, document = self._documents[name]
        try:
            return layout.read(document, max_bytes=self._max_bytes)
        except UnreadableLayout as error:
            raise OSError(errno.EIO, str(error)) from error

    def _scan(self) -> dict[str, Fingerprint] | Failure:
        try:
            layout = Layout(self._word)
            documents = layout.documents()
        except UnreadableLayout as error:
            return Failure(Cause.UNREADABLE, str(error))
        if len(documents) > self._max_files:
            return Failure(Cause.TOO_LARGE, f"more than {self._max_files} files")
        self._documents = {each.name: (layout, each) for each in documents}
        return {
            each.name: (layout.modification_time(each), int(each.blob.digest.partition(":")[2], 16), 0)
            for each in documents
        }
