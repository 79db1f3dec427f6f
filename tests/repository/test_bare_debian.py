"""The README's first minute on a bare Debian 12, from nothing to the demo's first answer.

Ten minutes and 600 MB, so it runs where it is asked for: ``SPECMUX_BARE_DEBIAN=1``, or the folder of a system
that debootstrap made.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("bare_debian.sh")
ASKED = os.environ.get("SPECMUX_BARE_DEBIAN", "")


def test_script_finds_what_the_readme_names() -> None:
    shown = subprocess.run([SCRIPT, "--show"], capture_output=True, text=True, check=True).stdout.splitlines()
    packages, started, asked = shown
    assert {"python3-venv", "make", "git"} <= set(packages.split())
    assert started == "make demo"
    assert re.fullmatch(r"curl -s http://127\.0\.0\.1:8080/openapi/v3", asked)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not ASKED, reason="SPECMUX_BARE_DEBIAN is not set")
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("debootstrap") is None, reason="no root or debootstrap")
def test_readme_works_on_a_bare_debian() -> None:
    folder = [] if ASKED == "1" else [ASKED]
    done = subprocess.run([SCRIPT, *folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "first answer on a bare Debian 12" in done.stdout
