"""What a text that is kept costs."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest

from specmux_converters.memory import in_own_memory

STATUS = Path("/proc/self/status")
COUNT = 20_000


def resident() -> int:
    """KiB of this process."""
    found = re.search(r"VmRSS:\s+(\d+)", STATUS.read_text())
    assert found is not None
    return int(found[1])


@pytest.mark.skipif(not STATUS.exists(), reason="no /proc")
def test_a_text_that_is_kept_costs_about_its_length() -> None:
    before = resident()
    kept = [in_own_memory(orjson.dumps({"a": number})) for number in range(COUNT)]
    assert kept[7] == b'{"a":7}'
    # 80 MB where each stays in the buffer that it was written into.
    assert resident() - before < COUNT * 400 / 1024
