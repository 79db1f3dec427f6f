"""What the tests of commands share: a disk cache and a home of their own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg-cache"))
    for name in ("KUBECONFIG", "SPECMUX_SERVER", "SPECMUX_CACHE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
