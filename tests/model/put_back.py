"""Faults that reviews found and that were mended, put back one by one: which of them does the model find?

    python tests/model/put_back.py [--only WORDS ...] [--seconds 120]

Each is put into a copy of the sources, and a machine runs on it until it finds the fault or that processor
time is over. No machine was written for a single fault. Prints a table; exits 1 if fewer than nine in
ten are found, or a fault does not fit the sources any more.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ("aggregator", "cache", "converters", "tools", "tests", "pyproject.toml")
WANTED: Final = 0.9
ENDLESS: Final = 1_000
"""How many times as long as in the suite a machine would run."""


@dataclass(frozen=True)
class Fault:
    """``found_by``: the review. ``rows``: module, text, and what stood there before it was mended."""

    name: str
    found_by: str
    machine: str
    rows: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Sighting:
    """What a machine says of a fault, and after how many steps."""

    words: str
    steps: str


def _fault(name: str, found_by: str, machine: str, *row: str) -> Fault:
    return Fault(name, found_by, machine, tuple(zip(row[::3], row[1::3], row[2::3], strict=True)))


CHANGES: Final = "specmux_aggregator.changes"
OWNERSHIP: Final = "specmux_aggregator.aggregation.ownership"
CHECKS: Final = "specmux_aggregator.aggregation.check_schedule"
STORE: Final = "specmux_cache.store"

FAULTS: Final = (
    _fault(
        "replicas send clients in circles",
        "real-cluster 2",
        "service",
        "specmux_aggregator.endpoints.openapi",
        "if not asked.is_redirected:",
        "if True:",
    ),
    _fault(
        "a redirect is not marked as one",
        "real-cluster 2",
        "service",
        "specmux_aggregator.endpoints.openapi",
        'return "&".join((*parts, f"{REDIRECTED}=1"))',
        'return "&".join(parts)',
    ),
    _fault(
        "what is new at one replica is 404 at the other",
        "real-cluster 2",
        "service",
        "specmux_aggregator.endpoints.not_found",
        "if observation.backend.url",
        "if False",
    ),
    _fault(
        "the stand-in owns what definitions have",
        "real-cluster 2b",
        "service",
        OWNERSHIP,
        "return (backend.is_fallback, backend.found",
        "return (False, backend.found",
    ),
    _fault(
        "the stand-in publishes what is excluded",
        "real-cluster 2c",
        "service",
        "specmux_aggregator.model.backend",
        "if self.found is not None and not self.found.allows(group_version):",
        "if False:",
    ),
    _fault(
        "a restarting apiserver takes group-versions away",
        "real-cluster D1",
        "service",
        CHECKS,
        "(monotonic - moment < grace or",
        "(",
    ),
    _fault(
        "absent while it starts: 404",
        "changes-verified J1",
        "service",
        "specmux_aggregator.endpoints.not_found",
        "if not snapshot.is_partial:",
        "if True:",
        "specmux_aggregator.endpoints.service",
        "if is_missing and self._first_look is not None and self._first_look.runs():",
        "if False:",
    ),
    _fault(
        "an empty root while it starts",
        "first-sight 18",
        "service",
        "specmux_aggregator.endpoints.service",
        "if request.path == ROOT_PATH and not snapshot.entries and self._is_unknown(snapshot):",
        "if False:",
    ),
    _fault(
        "the owner is who answered first",
        "house",
        "service",
        OWNERSHIP,
        "sorted(observations.values(), key=precedence)",
        "observations.values()",
    ),
    _fault(
        "a closed backend keeps what another offers",
        "house",
        "service",
        OWNERSHIP,
        "return (observation.is_closed, rank(observation.backend))",
        "return (False, rank(observation.backend))",
    ),
    _fault(
        "of several servers the last root is published",
        "peers",
        "service",
        "specmux_aggregator.backend_sources.servers",
        "return union_of(self.list_hidden())",
        "return {} if self.root is None else self.root.offers",
    ),
    _fault(
        "the order of servers decides",
        "peers",
        "service",
        "specmux_aggregator.model.server_union",
        "if key not in best or rank > best[key][0]:",
        "if key not in best:",
    ),
    _fault(
        "a document is asked of any server, once",
        "peers",
        "service",
        "specmux_aggregator.backend_sources.servers",
        "TRIES: Final = 16",
        "TRIES: Final = 0",
    ),
    _fault(
        "publications are lost at another replica",
        "changes-verified S1",
        "streams",
        f"{CHANGES}.events",
        "self._floor = new_base()",
        "self._floor = 2 * 10**15",
    ),
    _fault(
        "changes are lost at another replica",
        "changes-verified S2",
        "streams",
        f"{CHANGES}.log",
        "self._base = new_base()",
        "self._base = 2 * 10**15",
    ),
    _fault(
        "no reset after a restart without state",
        "changes-verified S3",
        "streams",
        f"{CHANGES}.log",
        "return False, []",
        "return True, []",
    ),
    _fault(
        "what was dropped is forgotten by a restart",
        "changes-verified S4",
        "streams",
        f"{CHANGES}.log",
        "self._base = base_of(entry.id)\n            self.dropped_id = entry.id - 1",
        "self._base = base_of(entry.id)\n            self.dropped_id = base_of(entry.id)",
    ),
    _fault(
        "polling has the newest entries alone",
        "changes-verified S5",
        "streams",
        f"{CHANGES}.endpoint",
        "page = wanted[: query.limit]",
        "page = wanted[-query.limit :]",
    ),
    _fault(
        "polling does not continue",
        "changes-verified S5",
        "streams",
        f"{CHANGES}.endpoint",
        "following = page[-1].id if len(wanted) > len(page) else None",
        "following = None",
    ),
    _fault(
        "one address takes all places",
        "attacks 6",
        "streams",
        f"{CHANGES}.events",
        "or not self._addresses.take(address)",
        "",
    ),
    _fault(
        "a slow follower loses events in silence",
        "changes-verified A",
        "streams",
        f"{CHANGES}.events",
        "            self.cut()\n        else:",
        "            return\n        else:",
    ),
    _fault(
        "an event is sent before it is stored",
        "changes-verified A",
        "service",
        f"{CHANGES}.history",
        "        if self._archive is not None:\n            # Store it before sending",
        "        self.followers.note_change(entry)\n"
        "        if self._archive is not None:\n            # Store it before sending",
        f"{CHANGES}.history",
        "time.perf_counter() - started)\n        self.followers.note_change(entry)",
        "time.perf_counter() - started)",
    ),
    _fault(
        "what went while it was down is never told",
        "the model",
        "service",
        f"{CHANGES}.history",
        "            self._note_gone()\n",
        "",
    ),
    _fault(
        "check as first command ends the cache",
        "first-sight 1, field 2",
        "commands",
        "specmux_tools.document_checks.results",
        "                if directory is not None:\n",
        "                if directory is not None:\n"
        "                    (directory / 'checks').mkdir(parents=True, exist_ok=True)\n",
        f"{STORE}.directory",
        "is_foreign = not all(_is_ours(path) for path in directory.iterdir())",
        "is_foreign = not all(path.name in (TAG_FILE, 'lock') for path in directory.iterdir())",
    ),
    _fault(
        "a pipe in a file's place hangs",
        "attacks 10",
        "store",
        f"{STORE}.bodies",
        "os.O_CLOEXEC | os.O_NONBLOCK, 0o600)",
        "os.O_CLOEXEC, 0o600)",
    ),
    _fault(
        "a flipped byte of the version ends the cache",
        "newcomer",
        "store",
        f"{STORE}.directory",
        'if not _is_marked(directory):\n            raise StoreUnavailable("its version file is',
        'if True:\n            raise StoreUnavailable("its version file is',
    ),
    _fault(
        "a folder in a body's place stays",
        "the model",
        "store",
        f"{STORE}.bodies",
        "        except IsADirectoryError:\n            _remove(target)",
        "        except ZeroDivisionError:\n            _remove(target)",
    ),
    _fault(
        "a shared body goes with its first entry",
        "house",
        "store",
        f"{STORE}.index",
        "return list(dict.fromkeys(asked).keys() - {tag for (tag,) in rows})",
        "return asked",
    ),
    _fault(
        "a damaged body is linked again",
        "house",
        "store",
        f"{STORE}.contents",
        "if self._body(present, packed=known.packed) is None:",
        "if False:",
    ),
    _fault(
        "a clock that was ahead keeps entries for ever",
        "house",
        "store",
        f"{STORE}.index",
        "(now, now))",
        "(now, 1e18))",
    ),
)


def path_of(copy: Path, module: str) -> Path:
    relative = module.replace(".", "/")
    for source in SOURCES[:4]:
        path = copy / source / f"{relative}.py"
        if path.exists():
            return path
    raise ValueError(f"there is no module {module}")


def patched(copy: Path, fault: Fault) -> dict[Path, tuple[str, str]]:
    """The text of each file before and after. Raises ValueError for a fault that does not fit."""
    texts: dict[Path, tuple[str, str]] = {}
    for module, old, new in fault.rows:
        path = path_of(copy, module)
        before, after = texts.get(path, (path.read_text(),) * 2)
        if after.count(old) != 1:
            raise ValueError(f"{fault.name}: {module} has {after.count(old)} times: {old}")
        texts[path] = before, after.replace(old, new)
    return texts


def find(copy: Path, fault: Fault, *, seconds: float) -> Sighting | None:
    """What found the fault; None if nothing did in ``seconds`` of processor time. Raises ValueError for one
    that does not fit."""
    texts = patched(copy, fault)
    try:
        for path, (_, after) in texts.items():
            path.write_text(after)
        return _sighting(copy, fault, factor=ENDLESS, seconds=seconds)
    finally:
        for path, (before, _) in texts.items():
            path.write_text(before)


def _sighting(copy: Path, fault: Fault, *, factor: float, seconds: float) -> Sighting | None:
    environment = {
        **os.environ,
        "SPECMUX_MODEL_FACTOR": str(factor),
        "SPECMUX_MODEL_SHRINK": "0",
        "PYTHONPATH": ":".join(str(copy / source) for source in SOURCES[:4]),
    }
    flags = ("-x", "-q", "-p", "no:cacheprovider", "--timeout", "0")
    limit = f"--cpu={math.ceil(seconds)}"
    done = subprocess.run(
        ["prlimit", limit, sys.executable, "-m", "pytest", *flags, f"tests/model/test_{fault.machine}.py"],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode in (0, -signal.SIGXCPU, -signal.SIGKILL):
        return None
    words = [line.removeprefix("E").strip() for line in done.stdout.splitlines() if line.startswith("E ")]
    if not words:
        raise ValueError(f"{fault.name}: {done.stdout[-300:]}{done.stderr[-300:]}")
    steps = re.search(r"after (\d+) steps", done.stdout)
    return Sighting(words[0], steps[1] if steps else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[""], help="words of their names, reviews or machines")
    parser.add_argument("--seconds", type=float, default=120.0, help="of a processor for each fault, at most")
    options = parser.parse_args()
    chosen = [
        fault
        for fault in FAULTS
        if any(words in f"{fault.name} {fault.found_by} {fault.machine}" for words in options.only)
    ]
    found = misfits = 0
    with tempfile.TemporaryDirectory(prefix="put-back-") as folder:
        copy = Path(folder)
        for source in SOURCES:
            one = ROOT / source
            if one.is_dir():
                shutil.copytree(one, copy / source, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(one, copy / source)
        for machine in sorted({fault.machine for fault in chosen}):
            sound = Fault("nothing", "", machine, ())
            if (words := _sighting(copy, sound, factor=1, seconds=options.seconds)) is not None:
                sys.exit(f"{machine} fails without any fault: {words}")
        for fault in chosen:
            try:
                sighting = find(copy, fault, seconds=options.seconds)
            except ValueError as error:
                misfits += 1
                print(f"does not fit: {error}", flush=True)
                continue
            found += sighting is not None
            words = ("NOT FOUND", "") if sighting is None else (sighting.words, sighting.steps)
            print(f"| {' | '.join((fault.name, fault.found_by, fault.machine, *words))} |", flush=True)
    print(f"{found} of {len(chosen)} found")
    return 1 if misfits or found < WANTED * len(chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
