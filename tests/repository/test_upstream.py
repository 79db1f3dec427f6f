"""``make upstream``: versions in order, the judges' own versions, and which files are compared."""

from __future__ import annotations

import gzip
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


FAKE_GO = """#!/bin/sh
echo "$@" >>"{told}"
if [ "$1" = build ]; then while [ "$1" != -o ]; do shift; done; echo built >"$2"; fi
"""
FAKE_RECORDER = """
import gzip, pathlib, sys
assert pathlib.Path(sys.argv[1]).read_text() == "built\\n"
pathlib.Path({recorded!r}).write_bytes(gzip.compress(b"same\\nnew answer\\n"))
"""


def test_answers_are_recorded_anew_with_the_named_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    go, module, recorded = tmp_path / "bin/go", tmp_path / "judge", tmp_path / "answers.jsonl.gz"
    script, broken = tmp_path / "record_answers.py", tmp_path / "record_nothing.py"
    go.parent.mkdir()
    module.mkdir()
    go.write_text(FAKE_GO.format(told=tmp_path / "told"))
    go.chmod(0o755)
    requirements = (
        "require (\n\tk8s.io/api v0.37.2\n\tk8s.io/kube-openapi v0.0.0-2\n\tk8s.io/klog/v2 v2.140.0\n)\n"
    )
    (module / "go.mod").write_text(requirements)
    recorded.write_bytes(gzip.compress(b"same\nold answer\n"))
    script.write_text(FAKE_RECORDER.format(recorded=str(recorded)))
    broken.write_text("raise SystemExit('no such kind')\n")
    monkeypatch.setenv("PATH", f"{go.parent}:/usr/bin:/bin")
    monkeypatch.setattr(upstream, "OUT", tmp_path / "out")
    recorders = [upstream.Recorder(module, ".", each, recorded) for each in (broken, script)]
    monkeypatch.setattr(upstream, "RECORDERS", recorders)

    assert upstream.record_all("v0.99.0") == 1  # one could not be had
    told = capsys.readouterr()
    assert "record_nothing: not recorded: " in told.err
    assert "no such kind" in told.err
    assert "record_answers: 1 answers of v0.99.0 differ\n  -old answer\n  +new answer\n" in told.out
    assert (tmp_path / "out/record_answers-v0.99.0.diff").read_text() == "-old answer\n+new answer\n"
    assert "get k8s.io/api@v0.99.0\n" in (tmp_path / "told").read_text()
    assert (module / "go.mod").read_text() == requirements

    assert upstream.record_all("v0.99.0") == 1
    assert "record_answers: 0 answers" in capsys.readouterr().out
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert upstream.record_all("v0.99.0") == 1
    assert "no go on the PATH" in capsys.readouterr().err


def test_recorders_are_where_they_are_said_to_be() -> None:
    for each in upstream.RECORDERS:
        assert (each.module / "go.mod").is_file()
        assert (each.module / each.package / "main.go").is_file()
        assert each.script.is_file()
        assert each.recorded.is_file()
