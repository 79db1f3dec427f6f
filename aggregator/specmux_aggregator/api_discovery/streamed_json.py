"""Serialize a tree with long arrays as JSON or CBOR, piece by piece. Pure.

A potentially long array is an iterator in the tree, and the writer yields after each leaf. No leaf takes
longer than a few resources, so the event loop can write a list of all with turns for others in between.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeVar

import orjson

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Work that yields whenever others may have a turn, and returns its result."""


class Writer(Protocol):
    """A wire format."""

    def leaf(self, value: Any) -> bytes: ...

    def array(self, items: list[bytes]) -> bytes: ...

    def object(self, members: list[tuple[str, bytes]]) -> bytes: ...


class JSONWriter:
    def leaf(self, value: Any) -> bytes:
        return orjson.dumps(value)

    def array(self, items: list[bytes]) -> bytes:
        return b"[%b]" % b",".join(items)

    def object(self, members: list[tuple[str, bytes]]) -> bytes:
        return b"{%b}" % b",".join(b"%b:%b" % (orjson.dumps(name), value) for name, value in members)


class CBORWriter:
    """Deterministic, like the codec of documents (RFC 8949, section 4.2.1). Imported when made, since most
    clients ask for JSON."""

    def __init__(self) -> None:
        from cbor2 import dumps

        self._dumps: Callable[..., bytes] = dumps

    def leaf(self, value: Any) -> bytes:
        return self._dumps(value, canonical=True)

    def array(self, items: list[bytes]) -> bytes:
        return b"".join((self._head(4, len(items)), *items))

    def object(self, members: list[tuple[str, bytes]]) -> bytes:
        written = sorted((self._dumps(name), value) for name, value in members)
        return b"".join((self._head(5, len(written)), *(part for member in written for part in member)))

    def _head(self, major: int, argument: int) -> bytes:
        head = self._dumps(argument)
        return bytes((head[0] | major << 5,)) + head[1:]


JSON_WRITER: Final = JSONWriter()


def write_tree(tree: Any, writer: Writer) -> Steps[bytes]:
    """The bytes of ``tree``; each iterator in it is consumed."""
    if isinstance(tree, Iterator):
        items = []
        for item in tree:
            piece = yield from write_tree(item, writer)
            items.append(piece)
        return writer.array(items)
    if isinstance(tree, dict) and has_iterator(tree):
        members = []
        for name, value in tree.items():
            piece = yield from write_tree(value, writer)
            members.append((name, piece))
        return writer.object(members)
    yield
    return writer.leaf(tree)


def has_iterator(members: Mapping[str, Any]) -> bool:
    """Whether an object contains an iterator and must be written member by member."""
    return any(isinstance(value, Iterator) for value in members.values())


def self_described(item: bytes) -> bytes:
    """A complete CBOR document."""
    from specmux_converters.codecs.cbor import SELF_DESCRIBED

    return SELF_DESCRIBED + item


def done(steps: Steps[T]) -> T:
    """Run all steps at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def is_longer(items: Iterable[object], most: int) -> bool:
    """Whether there are more than ``most`` items; consumes no more than that."""
    return any(number > most for number, _ in enumerate(items, 1))
