"""The stress of the service in its short form."""

from __future__ import annotations

import pytest

from stress.stress_service import FORMS, stress


@pytest.mark.long
def test_service_keeps_its_promises_while_everything_goes_wrong() -> None:
    run = stress(FORMS["short"])
    assert not run.findings.wrong, "\n".join(run.findings.wrong)
    assert run.findings.steady > 50
