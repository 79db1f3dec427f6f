"""Man pages say what the commands say, and are roff that its formatter takes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from specmux_aggregator.cli import main
from specmux_aggregator.commands.man import pages


def test_every_command_has_a_page(tmp_path: Path) -> None:
    assert CliRunner().invoke(main, ["man", str(tmp_path)]).exit_code == 0
    names = {path.stem for path in tmp_path.iterdir()}
    assert {"specmux", "specmux-serve", "specmux-cache", "specmux-cache-get", "specmux-man"} <= names
    page = (tmp_path / "specmux-cache-get.1").read_text()
    assert "\\-\\-pretty" in page
    assert ".SH EXAMPLES" in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff on PATH")
def test_pages_are_formatted_without_a_warning() -> None:
    for name, page in pages(main):
        done = subprocess.run(
            ["groff", "-Kutf8", "-man", "-ww", "-Tutf8", "-z"],
            input=page,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == "", name
