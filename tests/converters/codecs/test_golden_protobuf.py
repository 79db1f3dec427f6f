"""Against the Go reference: documents written as Protobuf byte for byte as gnostic does, and read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shared_data import GOLDEN, load, read
from specmux_converters.codecs import protobuf_v3
from specmux_converters.document import Limits

FOLDER = GOLDEN / "protobuf"


def recorded(path: Path) -> Path:
    return path.with_name(path.name.replace(".json", ".pb"))


def test_every_recorded_document_is_written_and_read(tally: Callable[[str, int], None]) -> None:
    paths = [path for path in sorted(FOLDER.rglob("*.json*")) if recorded(path).is_file()]
    unequal = []
    for path in paths:
        expected = read(recorded(path))
        written = protobuf_v3.encode(load(path))
        again = protobuf_v3.encode(protobuf_v3.decode(expected, limits=Limits()))
        if not written == again == expected:
            unequal.append(str(path.relative_to(FOLDER)))
    print(f"protobuf: {len(paths) - len(unequal)} of {len(paths)}")
    if not paths:
        pytest.skip("no document with its bytes")
    assert not unequal
    tally("golden protobuf: equal to Go", len(paths))
