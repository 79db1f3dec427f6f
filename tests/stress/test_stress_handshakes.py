"""Hashed bodies while handshakes fail, in the short form."""

from __future__ import annotations

import pytest

from stress.stress_handshakes import stress


@pytest.mark.long
def test_every_body_is_its_hashs_while_handshakes_fail() -> None:
    run = stress(3_000)
    assert not run.wrong, "\n".join(run.wrong)
    assert run.answers["200"] >= 3_000
