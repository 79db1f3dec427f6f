"""Counts calls from one folder of ours into another: ``room_changes.py ARGUMENT…`` runs ``specmux`` with the
arguments, then prints the count, and whence and whither most of them go.

A value that goes to and fro between folders is read in many places; one that goes through them once is not.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from specmux_aggregator.cli import main


def module_of(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name if name.startswith("specmux_") else ""


def folder_of(module: str) -> str:
    is_folder = hasattr(sys.modules.get(module), "__path__")
    return module if is_folder else module.rpartition(".")[0]


@contextmanager
def changes_counted() -> Iterator[Counter[tuple[str, str]]]:
    """Meanwhile and in this thread, the calls by caller's and called folder. Imports are no calls."""
    found: Counter[tuple[str, str]] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        called = module_of(frame) if event == "call" and frame.f_code.co_name != "<module>" else ""
        caller = frame.f_back
        while called and caller is not None and not module_of(caller):
            caller = caller.f_back
        if called and caller is not None and caller.f_code.co_name != "<module>":
            folders = (folder_of(module_of(caller)), folder_of(called))
            found[folders] += folders[0] != folders[1]

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


def count_changes(arguments: list[str]) -> Counter[tuple[str, str]]:
    with changes_counted() as found:
        main(arguments, standalone_mode=False)
    return found


if __name__ == "__main__":
    changes = count_changes(sys.argv[1:])
    print(sum(changes.values()))
    for (caller, called), count in changes.most_common(20):
        print(f"{count:5} {caller} -> {called}")
