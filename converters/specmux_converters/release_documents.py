"""Documents of Kubernetes' releases without their prose, packed into one file, and restored from it. Pure.

A document consists of schemas and path items, and nine in ten of these are the same in the next release and
in other documents. So the file is one JSON array of distinct values under zstd, each on a line of its own:

* the first is the index: of each release the source of its documents, and the line of each document
* a document is ``[frame, schemas, paths]``: what it has beside them, and the lines of its members by name
* a schema is ``[name, schema]``, and a path item ``[path, item]``
* within path items, what stands in several places is a line, too, and ``{"": line}`` takes its place: no
  object of OpenAPI has a member without a name

What describes one group-version in all releases stands together, and the file is a sequence of zstd frames of
some hundred KB of text each (``zstd -dc`` joins them). So a reader unpacks the frames that a document is in,
a quarter of them, and parses the lines it consists of, a twentieth. xz is 2 % smaller and takes ten times as
long to unpack. Within one document the same line gives
the same object, since documents are read-only; two documents share none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import accumulate
from typing import Any, Final

import orjson
import zstandard

from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_values import mapping
from specmux_converters.lazy.dataclasses import dataclass

_START: Final = b"[\n"
_BETWEEN: Final = b",\n"
_END: Final = b"\n]\n"
_STREAM: Final = 144 * 1024
"""Bytes of text after which another stream begins."""
_LINE: Final = ""
"""The one member of an object that stands for a line."""
_REFERENCE: Final = b'{"":'
_SHORT: Final = 24
"""Bytes of JSON that are no shorter as a line of their own."""
_SCHEMAS: Final = "schemas"
_EXCHANGED: Final = frozenset({"parameters", "requestBody", "responses"})


@dataclass(frozen=True, slots=True)
class PublishedRelease:
    """The documents of one release as they were published."""

    module: str
    """The Go module with its version: ``k8s.io/kubernetes@v1.37.2``."""
    hash: str
    """The module's, as in go.sum."""
    documents: Mapping[GroupVersion, Document] = field(repr=False)


class ReleaseDocuments:
    """The documents that ``pack_documents`` packed. A line is unpacked and parsed when a document has it."""

    def __init__(self, data: bytes) -> None:
        first = zstandard.ZstdDecompressor().decompressobj()
        text = first.decompress(data)
        index = orjson.loads(text[len(_START) : -len(_BETWEEN)])
        self._releases: dict[str, dict[str, Any]] = index["releases"]
        self._firsts: list[int] = list(accumulate((lines for lines, _ in index["streams"]), initial=1))
        """The first line of each stream, and the end."""
        self._starts = list(accumulate((size for _, size in index["streams"]), initial=0))
        self._packed = first.unused_data
        self._streams: dict[int, list[bytes]] = {}

    @property
    def releases(self) -> tuple[str, ...]:
        return tuple(self._releases)

    def source_of(self, release: str) -> tuple[str, str]:
        """The Go module that published the documents, with its version, and its hash."""
        return self._releases[release]["module"], self._releases[release]["hash"]

    def group_versions(self, release: str) -> tuple[GroupVersion, ...]:
        """Sorted; "version" and others that are no group-versions among them."""
        return tuple(self._releases[release]["documents"])

    def document(self, release: str, group_version: GroupVersion, *, schemas_only: bool = False) -> Document:
        """A new one with each call; with ``schemas_only`` without paths. Raises KeyError."""
        frame, schemas, paths = self._parse(self._releases[release]["documents"][group_version])
        known: dict[int, Any] = {}
        document: Document = self._parse(frame)
        if schemas is not None:
            document["components"] = {
                _SCHEMAS: dict(self._parse(line) for line in _lines_in(schemas)),
                **document["components"],
            }
        if not schemas_only:
            document["paths"] = dict(self._restore(line, known) for line in _lines_in(paths))
        return document

    def outline(self, release: str, group_version: GroupVersion) -> Document:
        """Paths and operations without what they take and give, which names no resource. Raises KeyError."""
        known: dict[int, Any] = {}
        _, _, paths = self._parse(self._releases[release]["documents"][group_version])
        items = (self._parse(line) for line in _lines_in(paths))
        return {"paths": {path: self._outline(item, known) for path, item in items}}

    def _outline(self, value: Any, known: dict[int, Any]) -> Any:
        """A path item, or an operation in it."""
        if not isinstance(value, dict):
            return value
        if _LINE in value:
            return self._outline(self._parse(value[_LINE]), known)
        return {
            key: self._outline(each, known)
            if _LINE in mapping(each) or "responses" in mapping(each)
            else self._fill(each, known)
            for key, each in value.items()
            if key not in _EXCHANGED
        }

    def _parse(self, line: int) -> Any:
        return orjson.loads(self._text(line))

    def _text(self, line: int) -> bytes:
        number = bisect_right(self._firsts, line) - 1
        if number not in self._streams:
            packed = self._packed[self._starts[number] : self._starts[number + 1]]
            self._streams[number] = (
                zstandard.ZstdDecompressor().decompress(packed).removesuffix(_END).split(_BETWEEN)
            )
        return self._streams[number][line - self._firsts[number]]

    def _restore(self, line: int, known: dict[int, Any]) -> Any:
        """The value of a line. ``known``: of the document, by line."""
        if line not in known:
            text = self._text(line)
            value = orjson.loads(text)
            known[line] = self._fill(value, known) if _REFERENCE in text else value
        return known[line]

    def _fill(self, value: Any, known: dict[int, Any]) -> Any:
        """The value, itself where it is no line's number: what it has of lines is put into it."""
        if type(value) is dict and _LINE in value:
            return self._restore(value[_LINE], known)
        waiting = [value] if type(value) in (dict, list) else []
        while waiting:
            container = waiting.pop()
            for key, each in container.items() if type(container) is dict else enumerate(container):
                if type(each) is dict:
                    if _LINE in each:
                        container[key] = self._restore(each[_LINE], known)
                    else:
                        waiting.append(each)
                elif type(each) is list:
                    waiting.append(each)
        return value


def pack_documents(releases: Mapping[str, PublishedRelease]) -> bytes:
    """The documents of all releases, without their prose. The same releases give the same bytes."""
    facts = {
        release: {key: facts_of(document) for key, document in sorted(published.documents.items())}
        for release, published in releases.items()
    }
    pack = _Pack(each["paths"].values() for documents in facts.values() for each in documents.values())
    lines: dict[str, dict[GroupVersion, int]] = {release: {} for release in releases}
    for key in sorted({key for documents in facts.values() for key in documents}):
        having = {release: documents[key] for release, documents in facts.items() if key in documents}
        for release, line in zip(having, pack.add_documents(having.values()), strict=True):
            lines[release][key] = line
    streams = list(_streams(pack.lines))
    compressed = [_compress(_BETWEEN.join(each) + end) for each, end in streams]
    index = {
        "zstd": zstandard.ZSTD_VERSION,  # others make other bytes of the same text
        "streams": [(len(each), len(data)) for (each, _), data in zip(streams, compressed, strict=True)],
        "releases": {
            release: {"module": each.module, "hash": each.hash, "documents": lines[release]}
            for release, each in releases.items()
        },
    }
    return b"".join([_compress(_START + orjson.dumps(index) + _BETWEEN), *compressed])


def _streams(lines: list[bytes]) -> Iterable[tuple[list[bytes], bytes]]:
    """The lines of each stream, and what follows the last of them."""
    start = size = 0
    for number, line in enumerate(lines):
        size += len(line)
        if size > _STREAM and number + 1 < len(lines):
            yield lines[start : number + 1], _BETWEEN
            start, size = number + 1, 0
    yield lines[start:], _END


def _compress(text: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=zstandard.MAX_COMPRESSION_LEVEL, write_checksum=True).compress(text)


def facts_of(document: Document) -> Document:
    """The document without ``description``, but for the reason phrase that a response has to have."""
    from http import HTTPStatus  # whoever restores needs none

    phrases = {str(each.value): each.phrase for each in HTTPStatus}

    def facts(value: Any) -> Any:
        if isinstance(value, list):
            return [facts(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {
            key: responses(each) if key == "responses" and isinstance(each, dict) else facts(each)
            for key, each in value.items()
            if not (key == "description" and isinstance(each, str))  # a field may be called so, too
        }

    def responses(value: dict[str, Any]) -> dict[str, Any]:
        return {
            status: {"description": phrases[status], **facts(each)} if status in phrases else facts(each)
            for status, each in value.items()
        }

    found: Document = facts(document)
    return found


def add_enums(document: Any, facts: Any) -> Any:
    """The document with the enums that ``facts``, the packaged one, has: Kubernetes publishes documents
    without those that its servers have. Both are walked as far as they are alike."""
    if isinstance(document, list) and isinstance(facts, list) and len(document) == len(facts):
        return [add_enums(each, known) for each, known in zip(document, facts, strict=True)]
    if not isinstance(document, dict) or not isinstance(facts, dict):
        return document
    whole = {key: add_enums(each, facts.get(key)) for key, each in document.items()}
    enum = facts.get("enum")
    return {**whole, "enum": enum} if isinstance(enum, list) and "enum" not in whole else whole


class _Pack:
    """Lines while they are being collected. The first is the index."""

    def __init__(self, items: Iterable[Iterable[Any]]) -> None:
        self.lines: list[bytes] = []
        self._known: dict[bytes, int] = {}
        self._places: Counter[bytes] = Counter()
        """Number of distinct values that contain a part of path items."""
        for item in {orjson.dumps(each): each for of_document in items for each in of_document}.values():
            self._count(item)

    def add_documents(self, documents: Iterable[Document]) -> list[int]:
        """Add a group-version's documents: first all schemas, which many others have, then all paths."""
        drafts = []
        for document in documents:
            components = dict(document.get("components") or {})
            schemas = components.pop(_SCHEMAS, None)
            frame = self._add({**document, "components": components, "paths": {}})
            named = None if schemas is None else _runs([self._add([*each]) for each in schemas.items()])
            drafts.append((frame, named, document["paths"]))
        return [
            self._add(
                [frame, named, _runs([self._add([path, self._shorten(paths[path])]) for path in paths])]
            )
            for frame, named, paths in drafts
        ]

    def _count(self, value: Any) -> None:
        if isinstance(value, dict | list):
            data = orjson.dumps(value)
            self._places[data] += 1
            if self._places[data] == 1:
                for each in value.values() if isinstance(value, dict) else value:
                    self._count(each)

    def _add(self, value: Any) -> int:
        data = orjson.dumps(value)
        if data not in self._known:
            self.lines.append(data)
            self._known[data] = len(self.lines)
        return self._known[data]

    def _shorten(self, value: Any) -> Any:
        """With lines for what stands in several places."""
        if not isinstance(value, dict | list):
            return value
        data = orjson.dumps(value)
        inner: Any
        if isinstance(value, dict):
            inner = {key: self._shorten(each) for key, each in value.items()}
        else:
            inner = [self._shorten(each) for each in value]
        return {_LINE: self._add(inner)} if self._places[data] > 1 and len(data) > _SHORT else inner


def _runs(lines: list[int]) -> list[int]:
    """Lines as pairs of the distance from the end of the last run, and the length of the next: what is added
    together stands together."""
    runs: list[int] = []
    end = 0
    for line in lines:
        if runs and line == end:
            runs[-1] += 1
        else:
            runs += [line - end, 1]
        end = line + 1
    return runs


def _lines_in(runs: list[int]) -> Iterable[int]:
    end = 0
    for distance, length in zip(runs[::2], runs[1::2], strict=True):
        start = end + distance
        end = start + length
        yield from range(start, end)
