"""The floors of what we depend on leave known faults out. A list kept by hand: CI has no database to ask."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
KEPT: dict[str, Any] = tomllib.loads((ROOT / "tests/repository/advisories.toml").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"].values()
REQUIRED = [*PROJECT["dependencies"], *(item for extra in EXTRAS for item in extra)]
LOOK_AGAIN = timedelta(days=365)


def floor_of(package: str) -> tuple[int, ...]:
    [line] = [item for item in REQUIRED if re.split(r"[<>=!~\[; ]", item)[0].lower() == package.lower()]
    [floor] = re.findall(r">=\s*([0-9.]+)", line)
    return version(floor)


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


@pytest.mark.parametrize("advisory", KEPT["advisory"], ids=lambda advisory: advisory["id"])
def test_floor_is_not_below_the_release_that_fixed_it(advisory: dict[str, str]) -> None:
    floor = floor_of(advisory["package"])
    if "fixed" in advisory:
        assert floor >= version(advisory["fixed"]), f"{advisory['id']}: {advisory['what']}"
    else:
        assert advisory["why"]


@pytest.mark.parametrize("requirement", REQUIRED)
def test_every_requirement_has_a_floor(requirement: str) -> None:
    assert ">=" in requirement


def test_list_was_looked_at_lately() -> None:
    looked_at = KEPT["looked_at"]
    assert isinstance(looked_at, date)
    assert datetime.now(UTC).date() - looked_at < LOOK_AGAIN, "look for new advisories, and set looked_at"
