"""``make upstream``: what the next release of Kubernetes changes in the files that our behaviour comes from.

Lists the versions of ``k8s.io`` modules that the Go module proxy has after those our judges are built of,
names the files in WATCHED that differ, and writes the differences to build/upstream. What cannot be had is
named and ends it with 1.

``make upstream RECORD=v0.38.0`` records answers anew: it builds each of RECORDERS with the k8s.io modules of
that version, beside the checkout's go.mod files, and runs what records. Recorded files are written where they
lie, which answers differ is told and written to build/upstream. Needs ``go``.
"""

from __future__ import annotations

import difflib
import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROXY: Final = "https://proxy.golang.org"
TESTS: Final = Path(__file__).resolve().parent
GO: Final = TESTS / "benchmarks" / "go"
OUT: Final = Path("build/upstream")
WATCHED: Final[Mapping[str, tuple[str, ...]]] = {
    "k8s.io/apiextensions-apiserver": (
        "pkg/apiserver/schema/",
        "pkg/apiserver/validation/",
        "pkg/apis/apiextensions/validation/",
        "pkg/apis/apiextensions/v1/",
        "pkg/controller/openapi/builder/",
        "pkg/registry/customresource/",
    ),
    "k8s.io/apimachinery": (
        "pkg/api/resource/",
        "pkg/api/validation/",
        "pkg/api/validate/",
        "pkg/runtime/converter.go",
        "pkg/util/strategicpatch/",
        "pkg/util/validation/",
        "pkg/util/yaml/",
    ),
    "k8s.io/apiserver": ("pkg/cel/", "pkg/storage/names/", "pkg/endpoints/discovery/aggregated/"),
}
"""Files and folders, by module; tests and generated files are left out."""


@dataclass(frozen=True, slots=True)
class Recorder:
    """``script`` puts inputs to the Go program of ``package`` in a module, and writes ``recorded``."""

    module: Path
    package: str
    script: Path
    recorded: Path


RECORDERS: Final = (
    Recorder(
        GO / "streams",
        ".",
        TESTS / "tools/validation/record_streams.py",
        TESTS / "tools/validation/recorded/streams.jsonl.gz",
    ),
    Recorder(
        GO / "decoding",
        ".",
        TESTS / "tools/validation/record_decoding.py",
        TESTS / "tools/validation/recorded/own-manifests.json",
    ),
    Recorder(GO, "./convert", TESTS / "vectors/record_conversions.py", TESTS / "vectors/conversions.jsonl"),
)
"""Those of one program of one version; what the others need is said at their heads."""
_STEP_SECONDS: Final = 600
_SHOWN: Final = 3
_VERSION: Final = re.compile(r"v0\.(\d+)\.(\d+)(?:-(alpha|beta|rc)\.(\d+))?")
_STAGES: Final = {"alpha": 0, "beta": 1, "rc": 2, None: 3}
_REQUIRED: Final = re.compile(r"^\s*(k8s\.io/\S+) (v\S+)", re.MULTILINE)


def order(version: str) -> tuple[int, ...]:
    """Releases after their previews; () for what is no version of a release."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return ()
    minor, patch, stage, number = match.groups()
    return int(minor), int(patch), _STAGES[stage], int(number or 0)


def newer(versions: Iterable[str], than: str) -> list[str]:
    return sorted((each for each in versions if order(each) > order(than)), key=order)


def judged_versions(files: Iterable[str]) -> dict[str, str]:
    """The newest version of each module that the judges' go.mod files require."""
    found: dict[str, str] = {}
    for text in files:
        for module, version in _REQUIRED.findall(text):
            found[module] = max(found.get(module, version), version, key=order)
    return found


def is_watched(name: str, places: Iterable[str]) -> bool:
    is_left_out = name.endswith("_test.go") or "zz_generated" in name or "/testdata/" in name
    return name.endswith(".go") and not is_left_out and any(name.startswith(each) for each in places)


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """The unified differences of files by name; a file that is gone or new is all of it."""
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name, "").splitlines(), new.get(name, "").splitlines()
        yield from difflib.unified_diff(before, after, f"old/{name}", f"new/{name}", lineterm="")


def fetch(path: str) -> bytes:
    with urllib.request.urlopen(f"{PROXY}/{path}", timeout=60) as answer:
        found: bytes = answer.read()
        return found


def watched_files(module: str, version: str) -> dict[str, str]:
    """Of a module's archive."""
    prefix = f"{module}@{version}/"
    with zipfile.ZipFile(io.BytesIO(fetch(f"{module}/@v/{version}.zip"))) as archive:
        return {
            name.removeprefix(prefix): archive.read(name).decode()
            for name in archive.namelist()
            if is_watched(name.removeprefix(prefix), WATCHED[module])
        }


def record(recorder: Recorder, version: str) -> list[str]:
    """Builds and runs it: the differences of its answers, one of two lines for each that is another."""
    before = answers(recorder.recorded)
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder, "module")
        shutil.copytree(recorder.module, module)
        required = judged_versions([(module / "go.mod").read_text()])
        wanted = [f"{name}@{version}" for name, old in sorted(required.items()) if order(old)]
        program = Path(folder, "program")
        run(["go", "get", *wanted], module)
        run(["go", "build", "-mod=mod", "-o", str(program), recorder.package], module)
        run([sys.executable, str(recorder.script), str(program)], TESTS.parent)
    return [
        line
        for line in difflib.unified_diff(before, answers(recorder.recorded), lineterm="", n=0)
        if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]


def run(command: Sequence[str], folder: Path) -> None:
    environment = {**os.environ, "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "auto"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_STEP_SECONDS,
        check=False,
    )
    if done.returncode:
        raise OSError(f"{' '.join(command[:2])}: {done.stderr.strip()[-500:]}")


def answers(recorded: Path) -> list[str]:
    data = recorded.read_bytes()
    return (gzip.decompress(data) if recorded.suffix == ".gz" else data).decode().splitlines()


def record_all(version: str) -> int:
    failed = 0
    if shutil.which("go") is None:
        print("no go on the PATH: nothing was recorded", file=sys.stderr)
        return 1
    for recorder in RECORDERS:
        name = recorder.script.stem
        try:
            changed = record(recorder, version)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"{name}: not recorded: {error}", file=sys.stderr)
            failed += 1
            continue
        print(f"{name}: {sum(line.startswith('+') for line in changed)} answers of {version} differ")
        if changed:
            OUT.mkdir(parents=True, exist_ok=True)
            (OUT / f"{name}-{version}.diff").write_text("\n".join(changed) + "\n")
            print(*(f"  {line[:200]}" for line in changed[:_SHOWN]), sep="\n")
    return 1 if failed else 0


def main() -> int:
    judged, missing = judged_versions(each.read_text() for each in GO.rglob("go.mod")), 0
    for module in WATCHED:
        old = judged[module]
        try:
            later = newer(fetch(f"{module}/@v/list").decode().split(), old)
            print(f"{module}: judged by {old}; newer: {', '.join(later) or 'none'}")
            if later:
                changed = list(differences(watched_files(module, old), watched_files(module, later[-1])))
                OUT.mkdir(parents=True, exist_ok=True)
                file = OUT / f"{module.rpartition('/')[2]}-{later[-1]}.diff"
                file.write_text("\n".join(changed) + "\n")
                names = [line.removeprefix("+++ new/") for line in changed if line.startswith("+++ new/")]
                print(f"{file}: {len(names)} files:", *names, sep="\n  ")
        except (urllib.error.URLError, zipfile.BadZipFile, TimeoutError) as error:
            print(f"{module}: cannot be had from {PROXY}: {error}", file=sys.stderr)
            missing += 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(record_all(sys.argv[1]) if len(sys.argv) > 1 else main())
