"""The reference data of a clone: what Kubernetes' code answered, its documents, and files of others.

``assembled`` puts together what the checkout has: the documents of Kubernetes' releases as the built-in ones
say them, without prose, and the sets of ``recorded``. Files of others are no part of the repository.
``make reference`` (``python tests/reference_data.py``) fetches those that Go modules have, each module by
name, version and hash, into a folder outside of the checkout, and names what could not be had.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import re
import shutil
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson

from specmux_aggregator import built_in_releases

TESTS: Final = Path(__file__).resolve().parent
RECORDED: Final = TESTS / "recorded"
MODULES: Final = TESTS / "reference_modules.toml"
FETCHED: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specmux-reference"
ASSEMBLED: Final = TESTS.parent / "build" / "reference"
PROXY: Final = "https://proxy.golang.org"
GROUP_VERSION: Final = re.compile(r"api/[^/]+|apis/[^/]+/[^/]+")
_PLAIN: Final = 24 * 1024
"""Bytes up to which a file is stored as it is, and not gzipped."""
_TRIES: Final = 3
_UNUSED: Final = 24 * 3600
"""Seconds after which a folder that no run took is removed."""


def assembled() -> Path:
    """The folder, named by its content: runs of one checkout share it, and none changes it below another."""
    place = ASSEMBLED / _digest()
    if not place.is_dir():
        ASSEMBLED.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix="new.", dir=ASSEMBLED))
        shutil.copytree(RECORDED, new, dirs_exist_ok=True)
        if FETCHED.is_dir():
            shutil.copytree(FETCHED, new, dirs_exist_ok=True)
        _write_releases(new / "data" / "k8s-pairs")
        try:
            new.rename(place)
        except OSError:  # another run was first
            if not place.is_dir():
                raise
            shutil.rmtree(new)
    os.utime(place)
    for each in ASSEMBLED.iterdir():
        if each != place and each.stat().st_mtime < time.time() - _UNUSED:
            shutil.rmtree(each, ignore_errors=True)
    return place


def _digest() -> str:
    """Of all that the folder is made of."""
    parts = [Path(__file__), Path(built_in_releases.__file__).with_name(built_in_releases.FILE)]
    parts += sorted(path for folder in (RECORDED, FETCHED) for path in folder.rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for path in parts:
        digest.update(f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def _write_releases(folder: Path) -> None:
    """Releases that were not fetched with their prose."""
    releases = built_in_releases.built_in_releases()
    for release in releases.releases:
        place = folder / release / "v3"
        if place.is_dir():
            continue
        for key in releases.group_versions(release):
            if GROUP_VERSION.fullmatch(key):
                write(place / f"{key}.json", orjson.dumps(releases.document(release, key)))


def write(path: Path, data: bytes) -> None:
    """Gzipped when it is large."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if len(data) <= _PLAIN:
        path.write_bytes(data)
    else:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(data, compresslevel=1, mtime=0))


def fetch() -> Iterator[str]:
    """What could not be had."""
    new = FETCHED.with_name(f"{FETCHED.name}.{os.getpid()}")
    for module in tomllib.loads(MODULES.read_text())["module"]:
        name = f"{module['path']}@{module['version']}"
        try:
            with zipfile.ZipFile(io.BytesIO(downloaded(module["path"], module["version"]))) as archive:
                if (found := hash_of(archive)) != module["sum"]:
                    yield f"{name} has the hash {found}, not {module['sum']}: nothing of it was taken"
                    continue
                for source, place in _files(module, archive.namelist()):
                    write(new / place, archive.read(f"{name}/{source}"))
                print(f"{name}: fetched", flush=True)
        except (OSError, zipfile.BadZipFile, KeyError) as error:
            yield f"{name} could not be had from {PROXY}: {error}"
    if new.is_dir():
        shutil.rmtree(FETCHED, ignore_errors=True)
        new.rename(FETCHED)


def _files(module: dict[str, object], names: list[str]) -> Iterator[tuple[str, str]]:
    """File of the module and its place. A source that ends with "/" is a folder with all that is below; of
    Kubernetes' ``apis__apps__v1_openapi.json`` those of group-versions, by their keys."""
    sources = module["files"]
    assert isinstance(sources, dict)
    for source, place in sources.items():
        if not source.endswith("/"):
            yield source, place
            continue
        start = f"{module['path']}@{module['version']}/{source}"
        for name in names:
            if name.startswith(start) and name.endswith((".json", ".yaml", ".pb")):
                below = name.removeprefix(start)
                key, is_named_by_key, _ = below.partition("_openapi.json")
                if not is_named_by_key:
                    yield source + below, place + below
                elif GROUP_VERSION.fullmatch(key := key.replace("__", "/")):
                    yield source + below, f"{place}{key}.json"


def downloaded(path: str, version: str) -> bytes:
    escaped = "".join(f"!{each.lower()}" if each.isupper() else each for each in path)
    last: OSError = OSError("not tried")
    for _ in range(_TRIES):
        try:
            with urllib.request.urlopen(f"{PROXY}/{escaped}/@v/{version}.zip", timeout=120) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError:
            raise
        except OSError as error:
            last = error
    raise last


def hash_of(archive: zipfile.ZipFile) -> str:
    """As in go.sum: of the list of the files' hashes, sorted by name."""
    lines = (
        f"{hashlib.sha256(archive.read(name)).hexdigest()}  {name}\n" for name in sorted(archive.namelist())
    )
    return "h1:" + base64.b64encode(hashlib.sha256("".join(lines).encode()).digest()).decode()


def main() -> int:
    missing = list(fetch())
    for line in missing:
        print(line, file=sys.stderr)
    print(f"{FETCHED}: tests read these files from the next run on")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
