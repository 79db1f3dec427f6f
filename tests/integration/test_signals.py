"""The end of a process that is told to end more than once, as impatient supervisors do."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from deadline import DEADLINE
from running.process import specmux, write_documents

DOCUMENT = b'{"openapi":"3.0.0","info":{"title":"t","version":"v1"},"paths":{}}'


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("attempt", range(3))
def test_process_ends_well_however_often_it_is_told(
    number: signal.Signals, attempt: int, tmp_path: Path
) -> None:
    folder = write_documents(tmp_path / "documents", {"apis/a.example/v1": DOCUMENT})
    with specmux("serve", "--directory", str(folder), "--listen-port", "0") as process:
        process.until_ready()
        deadline = time.monotonic() + DEADLINE
        while process.is_running and time.monotonic() < deadline:
            process.send(number)
            time.sleep(0.001 * (attempt + 1))
        assert process.wait() == 0, process.output
    assert "Traceback" not in process.output
    assert process.output.count("stopped") == 1
