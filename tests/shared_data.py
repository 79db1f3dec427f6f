"""The reference data: where it lies, and what its files say.

``SPECMUX_SHARED`` names the folder, else it is ``../shared``. Where there is neither, it is what the checkout
itself has, with the files that ``make reference`` fetched (reference_data.py). Tests that need more than that
say so with ``needs``, or take the ``files`` of a folder; both skip there, and the closing summary says how
many did (tests/conftest.py).
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from reference_data import assembled

# The service refuses a variable with its prefix that is no setting: what tests start inherits another name.
_INHERITED = "REFERENCE_DATA_OF_TESTS"
_given = os.environ.pop("SPECMUX_SHARED", None) or os.environ.get(_INHERITED)
SHARED = Path(_given or Path(__file__).resolve().parents[2] / "shared").resolve()
if not (SHARED / "data").is_dir():
    SHARED = assembled()
os.environ[_INHERITED] = str(SHARED)
DATA = SHARED / "data"
GOLDEN = SHARED / "golden"
REASON = "make reference"

CRDS = "data/crds"
"""Definitions that others publish."""
PUBLISHED = "data/k8s-pairs/1.35/v2/swagger.json.gz"
"""Kubernetes' documents with their prose, and its Swagger 2.0."""


def marks(*places: str) -> list[Any]:
    """Of a case that reads these places below the folder."""
    missing = [place for place in places if not (SHARED / place).exists()]
    return [
        pytest.mark.shared,
        pytest.mark.skipif(bool(missing), reason=f"needs {REASON}: {', '.join(missing)}"),
    ]


def needs(*places: str) -> Callable[[Any], Any]:
    """Decorator of a test that reads these places below the folder."""
    shared, skip = marks(*places)
    return lambda function: skip(shared(function))


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
        missing = str(folder.relative_to(SHARED))
        return [pytest.param(None, marks=pytest.mark.skip(f"needs {REASON}: {missing}"), id="not-there")]
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


def native_files() -> list[Any]:
    """``files`` of native documents. Those of releases between the first and the last are long."""
    between = tuple(f"{release}/" for release in NATIVE[1:-1])
    return [
        pytest.param(*case.values, marks=[*case.marks, pytest.mark.long], id=case.id)
        if str(case.id).startswith(between)
        else case
        for case in files(DATA / "k8s-pairs", "*/v3/**/*.json*")
    ]


IN_BOTH_OR_BUILT_IN = PAIRS if PAIRS != ("none",) else NATIVE[-4:]
"""For tests that need documents alone: in a clone the built-in ones of as many releases."""


def documents(release: str) -> dict[str, Path]:
    """Discovery key -> file of a release's native v3 documents below ``data/k8s-pairs``."""
    folder = DATA / "k8s-pairs" / release / "v3"
    return {
        str(path.relative_to(folder)).removesuffix(".gz").removesuffix(".json"): path
        for path in sorted(folder.rglob("*.json*"))
    }
