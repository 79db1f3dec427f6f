"""Large bytes on their way to a worker process, as files without a name (memfd_create(2)).

Pickling copies them while it holds the GIL, which for 60 MB keeps the event loop from running for 40 ms; a
file is written and read without it. A worker opens the file by the number that it has in the service.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

LARGE: Final = 1024 * 1024
"""Bytes that are worth a file."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """Where the bytes are."""

    path: str


class ParcelLost(Exception):
    """This process may not open the files of another."""


def is_large(value: object) -> bool:
    return isinstance(value, bytes) and len(value) > LARGE


@contextmanager
def parcels(values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """``values`` with parcels for those that are large, which are there until the end. Blocks while it
    writes. Raises OSError where there is no such file to be had."""
    with ExitStack() as stack:
        yield tuple(_parcel(value, stack) if is_large(value) else value for value in values)


def received(value: Any) -> Any:
    """The bytes of a parcel; anything else as it is. Raises ParcelLost."""
    if not isinstance(value, Parcel):
        return value
    try:
        return Path(value.path).read_bytes()
    except OSError as error:
        raise ParcelLost(str(error)) from error


def _parcel(body: bytes, stack: ExitStack) -> Parcel:
    if not hasattr(os, "memfd_create"):
        raise OSError("no files without a name on this system")
    number = os.memfd_create("specmux")
    stack.callback(os.close, number)
    rest = memoryview(body)
    while rest:
        rest = rest[os.write(number, rest) :]
    return Parcel(_path(number))


def _path(number: int) -> str:
    return f"/proc/{os.getpid()}/fd/{number}"
