"""The faults that are put back fit the sources as they are now."""

from __future__ import annotations

import pytest

from model.put_back import FAULTS, ROOT, Fault, patched


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_fits_the_sources(fault: Fault) -> None:
    for path, (before, after) in patched(ROOT, fault).items():
        assert before != after
        compile(after, path, "exec")
