"""The documents and reports that commands write: files of a folder, one file, or standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import quote

import click

from specmux_aggregator.console import forget_standard_output
from specmux_cache.whole_files import open_replacement
from specmux_converters.group_versions import GroupVersion
from specmux_tools.sources.input import refusals
from specmux_tools.sources.source import FileRefused

STDOUT: Final = Path("-")
_IN_NAMES: Final = "!$&'()+,;=@{}"


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


def replace_file(path: Path, data: bytes) -> bool:
    """Whether the file had other bytes; a reader sees the old ones or the new. Raises FileRefused."""
    with refusals(path):
        if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_replacement(path) as file:
            file.write(data)
        return True


def _pieces(data: bytes | Iterable[bytes]) -> Iterable[bytes]:
    return (data,) if isinstance(data, bytes) else data


output_file_option: Final = click.option(
    "--output-file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write this file instead of standard output (-).",
)
"""For ``write_out``."""


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
