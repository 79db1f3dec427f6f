"""What the README shows is what happens: its commands are run, and its links lead to files that exist."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = "http://127.0.0.1:8080"
BLOB = "https://github.com/specmux/specmux/blob/main/"
RAW = "https://raw.githubusercontent.com/specmux/specmux/main/"


def transcript() -> list[tuple[str, str]]:
    """Each command of the console blocks with what is shown below it."""
    (block,) = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def pattern(shown: str, url: str) -> str:
    """ "…" stands for any text, lines among it."""
    parts = shown.replace(SHOWN, url).rstrip("\n").split("…")
    return "(?s:.*)".join(re.escape(part) for part in parts)


@pytest.fixture(scope="module")
def demo() -> Iterator[tuple[str, str]]:
    """The URL of a demonstration that runs, and what it printed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "specmux_aggregator.cli", "demo", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    printed = []
    try:
        for line in process.stdout:
            printed.append(line)
            if line.startswith("  weather"):
                break
        found = re.search(r"http://127\.0\.0\.1:\d+", "".join(printed))
        assert found is not None
        yield found[0], "".join(printed)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


@pytest.mark.parametrize(("command", "shown"), transcript(), ids=[command for command, _ in transcript()])
def test_a_command_prints_what_is_shown(
    command: str, shown: str, demo: tuple[str, str], tmp_path: Path
) -> None:
    url, printed = demo
    if command == "uvx specmux demo":
        assert re.match(pattern(shown, url), printed), printed
        return
    program, *arguments = command.replace(SHOWN, url).split()
    if program == "specmux":
        call = [sys.executable, "-m", "specmux_aggregator.cli", *arguments]
    elif shutil.which(program) is None:
        pytest.skip(f"no {program} on PATH")
    else:
        call = [program, *arguments]
    environment = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")}
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    assert re.match(pattern(shown, url), done.stdout), done.stdout


def test_links_are_absolute_and_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README) + re.findall(r' (?:src|srcset|href)="([^"]+)"', README)
    assert links
    for link in links:
        assert link.startswith("https://"), f"{link}: the package index shows the page without the repository"
        path = link.removeprefix(BLOB).removeprefix(RAW).partition("#")[0]
        if path != link:
            assert (ROOT / path).exists(), link


def test_the_screenshots_are_small() -> None:
    for theme in ("light", "dark"):
        assert (ROOT / "docs" / "images" / f"page-{theme}.png").stat().st_size < 120_000


def test_the_picture_is_of_both_themes() -> None:
    picture = (ROOT / "docs" / "images" / "overview.svg").read_text()
    assert "prefers-color-scheme: dark" in picture
    assert re.search(r"<title[^>]*>[^<]+</title>", picture)


def test_the_figures_have_a_command_that_exists() -> None:
    named = re.findall(r"`tests/benchmarks/run_all\.py (\w+)`", README)
    assert len(named) == 3
    for name in named:
        assert (ROOT / "tests" / "benchmarks" / f"bench_{name}.py").is_file(), name
