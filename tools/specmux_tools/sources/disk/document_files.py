"""The files that commands read documents from and write them to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import click

from specmux_aggregator.console import forget_standard_output, write_error
from specmux_aggregator.errors import SpecmuxError
from specmux_aggregator.exits import UNREADABLE
from specmux_aggregator.folders import walked
from specmux_aggregator.http.content_codings import BadCoding, TooLarge
from specmux_aggregator.workers.file_names import is_document_name
from specmux_converters.errors import ConverterError, cut
from specmux_converters.group_versions import GroupVersion
from specmux_tools.sources.disk.files import read_bytes
from specmux_tools.sources.options import STDIN

Command = TypeVar("Command", bound=Callable[..., Any])

STDOUT: Final = Path("-")
_IN_NAMES: Final = "!$&'()+,;=@{}"


class FileRefused(SpecmuxError):
    """A file or an answer that cannot be read, converted or written. ``where`` names it, unless
    the reason does."""

    def __init__(self, where: object, reason: object) -> None:
        place = f"{cut(str(where))}: " if str(where) else ""
        super().__init__(f"{place}{reason}" if reason else str(where))


@contextmanager
def refusals(where: object) -> Iterator[None]:
    """Turns what can go wrong with one file into FileRefused."""
    try:
        yield
    except (ConverterError, BadCoding, TooLarge) as error:
        raise FileRefused(where, error) from error
    except OSError as error:
        raise FileRefused(where, error.strerror or "cannot be used") from error


@contextmanager
def reported_refusals() -> Iterator[None]:
    """Inside a click command: FileRefused ends the process with its message and code."""
    try:
        yield
    except FileRefused as error:
        write_error(str(error))
        raise click.exceptions.Exit(UNREADABLE) from error


def read_file(path: Path) -> bytes:
    """As ``sources.files.read_bytes``. Raises FileRefused."""
    with refusals("standard input" if path == STDIN else path):
        return read_bytes(path)


def document_files(folder: Path) -> tuple[Path, ...]:
    """The documents below a folder, told by their names, sorted.

    Raises FileRefused when there is none, and for a folder that may not be read: it could hold some.
    """
    found = tuple(walked(folder, is_document_name, refuse=_refuse))
    if not found:
        raise FileRefused(folder, "no documents in it")
    return tuple(sorted(found))


def _refuse(error: OSError) -> None:
    raise FileRefused(error.filename, error.strerror or "cannot be read") from error


def file_of(folder: Path, group_version: GroupVersion, suffix: str) -> Path:
    """``folder/apis/apps/v1.json``. Keys come from foreign documents: none leads out of the folder."""
    segments = [quote(segment, safe=_IN_NAMES) for segment in group_version.split("/")]
    safe = [segment.replace(".", "%2E") if segment.strip(".") == "" else segment for segment in segments]
    *parents, last = safe
    return folder.joinpath(*parents, f"{last}{suffix}")


def write_file(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Makes the folders above it too. Raises FileRefused."""
    with refusals(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines(_pieces(data))


def _pieces(data: bytes | Iterable[bytes]) -> Iterable[bytes]:
    return (data,) if isinstance(data, bytes) else data


def output_file_option(command: Command) -> Command:
    """``--output-file``, for ``write_out``."""
    return click.option(
        "--output-file",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write this file instead of standard output (-).",
    )(command)


def write_out(data: bytes | Iterable[bytes], path: Path | None = None, *, is_text: bool) -> None:
    """To the file, else to standard output: exactly these bytes; on a terminal a text ends its line.

    Raises FileRefused; a reader who has gone (``| head``) is left to click, which ends with 1 and says
    nothing.
    """
    if path is not None and path != STDOUT:
        write_file(path, data)
        return
    if sys.stdout is None:  # Python's own value where the descriptor is closed
        raise FileRefused("standard output", "closed")
    out = sys.stdout.buffer
    try:
        last = b""
        for last in _pieces(data):
            out.write(last)
        if is_text and out.isatty() and not last.endswith(b"\n"):
            out.write(b"\n")
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        forget_standard_output()
        raise FileRefused("standard output", error.strerror or "cannot be written") from error
