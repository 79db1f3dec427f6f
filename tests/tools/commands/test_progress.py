"""Progress on a terminal: said while a command works, taken back at its end, and never in a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from data.explained_documents import bed

PATIENCE = "specmux_aggregator.console.PATIENCE"
PROGRAM = f"""
import sys
from unittest import mock
from specmux_aggregator.cli import main
with mock.patch("{PATIENCE}", 0.001):
    main()
"""
COMMANDS = (
    ("check", "reading", ("check", "-", "--no-cache", "--fail-on", "never")),
    ("schemas", "writing schemas", ("schemas", "out", "--file", "-")),
    ("convert", "converting", ("convert", "-", "--output-file", "made.json")),
    ("merge", "merging", ("merge", "-", "--output-file", "merged.json")),
    ("validate", "validating", ("validate", "--file", "-", "garden.yaml")),
)
MANIFEST = "apiVersion: garden.example.org/v1\nkind: Bed\nmetadata: {name: one}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bed.json").write_text(json.dumps(bed(name={"type": "string"})))
    (tmp_path / "garden.yaml").write_text(MANIFEST)
    return tmp_path


def on_terminal(folder: Path, *words: str, term: str = "xterm", is_said: bool = True) -> str:
    """What a terminal as standard error is sent."""
    ours, theirs = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=folder,
        env={**os.environ, "TERM": term, "XDG_CACHE_HOME": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    said = os.read(ours, 65536) if is_said else b""  # the document comes when something was said
    assert started.stdin is not None
    started.stdin.write((folder / "bed.json").read_bytes())
    started.stdin.close()
    with started, suppress(OSError):  # which is how a terminal says that nobody writes any more
        while read := os.read(ours, 65536):
            said += read
    os.close(ours)
    assert started.returncode == 0, said
    return said.decode()


@pytest.mark.parametrize(
    ("what", "words"), [each[1:] for each in COMMANDS], ids=[each[0] for each in COMMANDS]
)
def test_work_is_said_on_a_terminal_and_taken_back(folder: Path, what: str, words: tuple[str, ...]) -> None:
    said = on_terminal(folder, *words)
    first = said.partition("\x1b[K")[0] + "\x1b[K"  # check has a second step
    lines = first.split(f"\r{what} … ")[1:]
    assert lines
    assert all(re.fullmatch(r"\d+ s", line) for line in lines[:-1])
    assert re.fullmatch(r"\d+ s\r\x1b\[K", lines[-1])


def test_nothing_is_said_with_quiet_or_on_a_dumb_terminal(folder: Path) -> None:
    words = COMMANDS[2][2]
    assert on_terminal(folder, *words, "--quiet", is_said=False) == ""
    assert on_terminal(folder, *words, term="dumb", is_said=False) == ""
