"""Pass large bytes to a worker process as unnamed files (memfd_create(2)).

Pickling copies them while holding the GIL, which for 60 MB blocks the event loop for 40 ms; a file is written
and read without the GIL. A worker opens the file by its descriptor number in the service.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

LARGE: Final = 1024 * 1024
"""Least bytes for which a file is worthwhile."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """The location of the bytes."""

    path: str


class ParcelLost(Exception):
    """This process may not open files of another."""


def is_large(value: object) -> bool:
    return isinstance(value, bytes) and len(value) > LARGE


@contextmanager
def parcels(values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """``values`` with large ones replaced by parcels, which exist until the context ends. Blocks while
    writing. Raises OSError if memory files are not available."""
    with ExitStack() as stack:
        yield tuple(_parcel(value, stack) if is_large(value) else value for value in values)


def received(value: Any) -> Any:
    """The bytes of a parcel; any other value unchanged. Raises ParcelLost."""
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
