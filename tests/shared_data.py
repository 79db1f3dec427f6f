"""The reference data: where it lies (``SPECMUX_SHARED``, else ``../shared``), and what its files say.

A user's clone does not have it. Tests that need it use ``needs_shared`` or the ``files`` of a folder; both
skip there, and the closing summary says how many did (tests/conftest.py).
"""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

# The service refuses a variable with its prefix that is no setting: what tests start inherits another name.
_INHERITED = "REFERENCE_DATA_OF_TESTS"
if _given := os.environ.pop("SPECMUX_SHARED", None):
    os.environ[_INHERITED] = str(Path(_given).resolve())
SHARED = Path(os.environ.get(_INHERITED) or Path(__file__).resolve().parents[2] / "shared").resolve()
DATA = SHARED / "data"
GOLDEN = SHARED / "golden"
REASON = "no reference data beside the checkout"

needs_shared = [pytest.mark.shared, pytest.mark.skipif(not DATA.is_dir(), reason=REASON)]
"""Marks for one test: ``pytestmark = needs_shared``, or ``@pytest.mark.parametrize(..., marks=...)``."""


def shared(function: Any) -> Any:
    """Decorator form of ``needs_shared``."""
    for mark in needs_shared:
        function = mark(function)
    return function


def read(path: Path) -> bytes:
    """The file's bytes, unpacked when it is stored gzipped."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def load(path: Path) -> Any:
    return orjson.loads(read(path))


def files(folder: Path, pattern: str = "**/*") -> list[Any]:
    """A pytest parameter for every file below ``folder``, or the one that is skipped in its place."""
    found = sorted(path for path in folder.glob(pattern) if path.is_file() and path.name != "INDEX.json")
    if not found:
        return [pytest.param(None, marks=needs_shared, id="no-reference-data")]
    return [pytest.param(path, marks=pytest.mark.shared, id=str(path.relative_to(folder))) for path in found]


def recorded_release(place: Path) -> str:
    """The release ("1.37") of Kubernetes that made a golden set: what ``release`` of its INDEX.json or
    manifest.json is, else the first version that its README names beside Kubernetes' modules. The first sets
    say none; they are of 0.34."""
    for folder in dict.fromkeys((place, GOLDEN)):
        for name in ("INDEX.json", "manifest.json"):
            if (folder / name).is_file():
                told = orjson.loads((folder / name).read_bytes())
                found = _RELEASE.search(str(told.get("release", ""))) if isinstance(told, dict) else None
                if found:
                    return f"1.{found[1]}"
        if (folder / "README.md").is_file():
            found = _MADE_BY.search((folder / "README.md").read_text())
            if found:
                return f"1.{found[1]}"
    return "1.34"


_RELEASE = re.compile(r"v?[01]\.(\d\d)")
_MADE_BY = re.compile(r"(?i)(?:k8s\.io|kube|apiextensions)[^\n|]*?\bv?[01]\.(3\d)\b")


PAIRS = tuple(sorted(path.parents[1].name for path in DATA.glob("k8s-pairs/*/v2/swagger.json.gz"))) or (
    "none",
)
"""The releases in both forms: more where more lie there."""

NATIVE = tuple(sorted(path.parents[2].name for path in DATA.glob("k8s-pairs/*/v3/apis/apps"))) or ("none",)
"""The releases in native documents."""


def documents(release: str) -> dict[str, Path]:
    """Discovery key -> file of a release's native v3 documents below ``data/k8s-pairs``."""
    folder = DATA / "k8s-pairs" / release / "v3"
    return {
        str(path.relative_to(folder)).removesuffix(".gz").removesuffix(".json"): path
        for path in sorted(folder.rglob("*.json*"))
    }
