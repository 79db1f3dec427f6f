"""Documents of Kubernetes' releases without their prose, restored from one file. Pure. The file is written by
``tests/converters/record_release_documents.py``.

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
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Final

import orjson
import zstandard

from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_values import mapping

START: Final = b"[\n"
BETWEEN: Final = b",\n"
END: Final = b"\n]\n"
LINE: Final = ""
"""The one member of an object that stands for a line."""
_REFERENCE: Final = b'{"":'
SCHEMAS: Final = "schemas"
_EXCHANGED: Final = frozenset({"parameters", "requestBody", "responses"})


class ReleaseDocuments:
    """The documents in a file. A line is unpacked and parsed when a document has it."""

    def __init__(self, data: bytes) -> None:
        first = zstandard.ZstdDecompressor().decompressobj()
        text = first.decompress(data)
        index = orjson.loads(text[len(START) : -len(BETWEEN)])
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
                SCHEMAS: dict(self._parse(line) for line in _lines_in(schemas)),
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
        if LINE in value:
            return self._outline(self._parse(value[LINE]), known)
        return {
            key: self._outline(each, known)
            if LINE in mapping(each) or "responses" in mapping(each)
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
                zstandard.ZstdDecompressor().decompress(packed).removesuffix(END).split(BETWEEN)
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
        if type(value) is dict and LINE in value:
            return self._restore(value[LINE], known)
        waiting = [value] if type(value) in (dict, list) else []
        while waiting:
            container = waiting.pop()
            for key, each in container.items() if type(container) is dict else enumerate(container):
                if type(each) is dict:
                    if LINE in each:
                        container[key] = self._restore(each[LINE], known)
                    else:
                        waiting.append(each)
                elif type(each) is list:
                    waiting.append(each)
        return value


def _lines_in(runs: list[int]) -> Iterable[int]:
    """``runs``: the distance of each from the end of the one before, and its length, alternating."""
    end = 0
    for distance, length in zip(runs[::2], runs[1::2], strict=True):
        start = end + distance
        end = start + length
        yield from range(start, end)


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
