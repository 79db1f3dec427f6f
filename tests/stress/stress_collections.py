"""A list of 100 MB, as JSON and as CBOR, into nothing: how much memory its writing takes.

    python tests/stress/stress_collections.py

Exit code 1 where the process grows by more than 32 MiB.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from typing import Any, Final

from specmux_converters.codecs.objects.collections import list_pieces
from specmux_converters.media_types import CBOR, JSON, MediaType

SIZE: Final = 100_000_000
MOST: Final = 32 * 1024 * 1024
FIELDS: Final = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}}


def maps(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        data = {f"key-{line}": f"{number} {'x' * 180}" for line in range(10)}
        yield {"metadata": {"name": f"map-{number}", "namespace": "default"}, "data": data}


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def grown(media_type: MediaType) -> tuple[int, int]:
    """Bytes written, and bytes that the process has grown by."""
    before, written, count = peak(), 0, SIZE // 1_900
    for piece in list_pieces(FIELDS, maps(count), count=count, media_type=media_type):
        written += len(piece)
    return written, peak() - before


def main() -> int:
    is_bounded = True
    for media_type in (JSON, CBOR):
        written, more = grown(media_type)
        is_bounded &= written >= SIZE and more <= MOST
        print(f"{media_type}: {written / 1e6:.0f} MB written, the process grew by {more / 2**20:.1f} MiB")
    return 0 if is_bounded else 1


if __name__ == "__main__":
    sys.exit(main())
