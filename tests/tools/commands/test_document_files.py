"""The files that commands are given."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from specmux_converters.group_versions import GroupVersion
from specmux_tools.sources.listing import inputs_at
from specmux_tools.sources.source import FileRefused


def test_files_folders_and_standard_input_come_in_the_order_in_which_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"piped")))
    below = tmp_path / "documents/apis/apps/v1.json"
    below.parent.mkdir(parents=True)
    below.write_bytes(b"below")
    (tmp_path / "documents/README.md").write_bytes(b"no document")
    alone = tmp_path / "alone.txt"
    alone.write_bytes(b"alone")
    words = (alone, Path("-"), tmp_path / "documents")
    found = [each for word in words for each in inputs_at(str(word))]
    assert [(each.name, each.read(), each.group_version, each.relative) for each in found] == [
        (str(alone), b"alone", None, ""),
        ("standard input", b"piped", None, ""),
        (str(below), b"below", GroupVersion("apis/apps/v1"), "apis/apps/v1.json"),
    ]


def test_folder_without_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileRefused, match="no document in it"):
        list(inputs_at(str(tmp_path)))
