"""The cluster that the tests of this folder ask who may ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fakes.reviewer import Reviewing, reviewing


@pytest.fixture
def reviewer() -> Iterator[Reviewing]:
    with reviewing() as started:
        started.fake.know("alice-token", "alice")
        started.fake.know("bob-token", "bob", groups=["ops", "system:authenticated"])
        yield started
