"""``make upstream``: versions in order, the judges' own versions, and which files are compared."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

import upstream


def test_previews_come_before_their_release() -> None:
    listed = [
        "v0.38.0",
        "v0.37.2",
        "v0.38.0-rc.1",
        "v0.38.0-beta.0",
        "v0.38.0-alpha.10",
        "v0.38.0-alpha.2",
        "x",
    ]
    assert upstream.newer(listed, "v0.37.2") == [
        "v0.38.0-alpha.2",
        "v0.38.0-alpha.10",
        "v0.38.0-beta.0",
        "v0.38.0-rc.1",
        "v0.38.0",
    ]
    assert upstream.newer(listed, "v0.38.0") == []


def test_the_judges_name_every_watched_module() -> None:
    files = (each.read_text() for each in upstream.GO.rglob("go.mod"))
    assert set(upstream.WATCHED) <= upstream.judged_versions(files).keys()


def test_differences_are_of_watched_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    module, kept = "k8s.io/apimachinery", "pkg/api/resource/quantity.go"

    def archive(version: str) -> bytes:
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as file:
            for name in (kept, "pkg/api/resource/quantity_test.go", "pkg/other/a.go"):
                file.writestr(f"{module}@{version}/{name}", f"// of {version}\n")
        return data.getvalue()

    def fetch(path: str) -> bytes:
        if not path.startswith(module):
            raise TimeoutError("refused")
        return (
            b"v0.99.0\n" if path.endswith("list") else archive(path.rpartition("/")[2].removesuffix(".zip"))
        )

    monkeypatch.setattr(upstream, "fetch", fetch)
    monkeypatch.setattr(upstream, "OUT", tmp_path)
    assert upstream.main() == 1  # two modules could not be had
    told = capsys.readouterr()
    assert told.err.count("cannot be had") == 2
    (written,) = upstream.OUT.iterdir()
    assert (kept in told.out, "quantity_test" in told.out + written.read_text()) == (True, False)
    assert "+// of v0.99.0" in written.read_text()
