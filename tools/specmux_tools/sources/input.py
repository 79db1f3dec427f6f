"""A file that a command reads, wherever it lies: the one type that reads it and names it in errors.

``sources.listing`` lists the inputs that a word names on this machine, ``sources.arguments`` those of servers
too. Bytes are unpacked here and nowhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from specmux_aggregator.folders import read_at_most
from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.http.messages import Coding
from specmux_converters.document import DEFAULT_LIMITS, Document, DocumentKind, canonical
from specmux_converters.errors import ConverterError
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.recognise import RecognisedInput, recognise
from specmux_tools.sources.options import STDIN
from specmux_tools.sources.source import FileRefused

_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Input:
    """A document, or a file of several: its content is at ``path``, in ``data``, or ``document``."""

    name: str
    """The name in messages, as its user finds it."""
    path: Path | None = None
    """Read when asked for; ``-`` is standard input."""
    data: bytes | None = field(default=None, repr=False)
    document: Document | None = field(default=None, repr=False, compare=False)
    """OpenAPI v3 of a server, which is parsed already."""
    group_version: GroupVersion | None = None
    """The one that its name below a folder spells, or its server says."""
    relative: str = ""
    """Its path below the folder that was named."""

    @classmethod
    def at(cls, path: Path) -> Input:
        """The file or standard input."""
        return cls("standard input" if path == STDIN else str(path), path)

    def read(self) -> bytes:
        """The bytes, without gzip. Raises FileRefused."""
        with refusals(self.name):
            if self.data is not None:
                return unpack(self.data)
            return read_bytes(self.path) if self.path is not None else canonical(self.document or {})

    def load(self) -> Input:
        """The same, with its bytes in memory. Raises FileRefused."""
        return replace(self, data=self.read()) if self.document is None else self

    @property
    def is_on_disk(self) -> bool:
        return self.path not in (None, STDIN)

    def recognise(self) -> RecognisedInput:
        """Raises ConverterError, FileRefused."""
        if self.document is not None:
            return RecognisedInput(DocumentKind.OPENAPI_3, (self.document,))
        return recognise(self.read())


@contextmanager
def refusals(where: object) -> Iterator[None]:
    """Turns what can go wrong with one file into FileRefused."""
    try:
        yield
    except (ConverterError, BadCoding, TooLarge) as error:
        raise FileRefused(where, error) from error
    except OSError as error:
        raise FileRefused(where, error.strerror or "cannot be used") from error


def read_bytes(path: Path) -> bytes:
    """The file's bytes, or those of standard input for ``-``, unpacked when gzipped.

    Raises OSError, BadCoding, and TooLarge beyond what a document may have.
    """
    most = DEFAULT_LIMITS.max_bytes
    data = sys.stdin.buffer.read(most + 1) if path == STDIN else read_at_most(path, most)
    if len(data) > most:
        raise TooLarge(f"more than {most} bytes")
    return unpack(data)


def unpack(data: bytes) -> bytes:
    """The bytes, without gzip. Raises BadCoding, TooLarge."""
    if not data.startswith(_GZIP):
        return data
    return decode_body(data, Coding.GZIP, max_bytes=DEFAULT_LIMITS.max_bytes)
