"""What the README shows is what happens: its commands are run, and its links lead to files that exist."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deadline import DEADLINE

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = "http://127.0.0.1:8080"


def transcript() -> list[tuple[str, str]]:
    """Each command of the console blocks with what is shown below it."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
        found += zip(parts[::2], parts[1::2], strict=True)
    return found


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
        process.communicate(timeout=DEADLINE)


@pytest.mark.parametrize(("command", "shown"), transcript(), ids=[command for command, _ in transcript()])
def test_a_command_prints_what_is_shown(
    command: str, shown: str, demo: tuple[str, str], tmp_path: Path
) -> None:
    url, printed = demo
    if command == "make demo":
        assert re.match(pattern(shown, url), printed), printed
        recipe = re.search(r"^demo: .*\n\t(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert recipe is not None
        assert recipe[1] == "$(BIN)/specmux demo"
        return
    program, *arguments = command.replace(SHOWN, url).removeprefix(".venv/bin/").split()
    if program == "specmux":
        call = [sys.executable, "-m", "specmux_aggregator.cli", *arguments]
    elif shutil.which(program) is None:
        pytest.skip(f"no {program} on PATH")
    else:
        call = [program, *arguments]
    environment = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")}
    done = subprocess.run(call, capture_output=True, text=True, timeout=DEADLINE, env=environment)
    assert done.returncode == 0, done.stderr
    assert re.match(pattern(shown, url), done.stdout), done.stdout


def test_the_program_prints_the_fields_of_a_tree(demo: tuple[str, str], tmp_path: Path) -> None:
    url, _ = demo
    (program,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", program.replace(SHOWN, url)],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env={**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
    )
    assert done.stderr == ""
    assert {"apiVersion", "kind", "metadata", "spec"} <= set(done.stdout.split())


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", text) + re.findall(r' (?:src|srcset|href)="([^"]+)"', text)


def test_links_of_ours_are_relative_and_lead_to_files() -> None:
    ours = [link for link in links(README) if not link.startswith("https://")]
    assert len(ours) > 30
    for link in ours:
        assert (ROOT / link.partition("#")[0]).exists(), link


def test_package_index_gets_absolute_links_once_there_is_a_home() -> None:
    namespace = runpy.run_path(str(ROOT / "hatch_build.py"))
    described = namespace["long_description"](README, "https://forge.example/a/specmux")
    assert len(links(described)) == len(links(README))
    for link in links(described):
        assert link.startswith("https://"), link
        if link.endswith((".svg", ".png")):
            assert link.startswith("https://forge.example/a/specmux/raw/"), link
    assert namespace["urls"]("https://forge.example/a/specmux")["Issues"].endswith("/specmux/issues")


def test_package_index_gets_no_link_that_leads_nowhere_before() -> None:
    namespace = runpy.run_path(str(ROOT / "hatch_build.py"))
    described = namespace["long_description"](README, "")
    assert links(described)
    assert [link for link in links(described) if not link.startswith("https://")] == []
    assert namespace["urls"]("") == {}


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
