"""Golden sets are judged by the release that made them, whoever labels them and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared_data import recorded_release


@pytest.mark.parametrize(
    ("name", "text", "release"),
    [
        ("README.md", "Made by apiextensions-apiserver 0.37.2: see below.", "1.37"),
        ("README.md", "| cases | recorded with k8s.io/kube-openapi v0.35.0 |", "1.35"),
        ("README.md", "Cases made by hand, 1.37 times as many.", "1.34"),
        ("INDEX.json", '{"release": "v1.36.3"}', "1.36"),
        ("manifest.json", '{"release": "0.37"}', "1.37"),
        ("manifest.json", "[]", "1.34"),
    ],
)
def test_release_of_a_set(tmp_path: Path, name: str, text: str, release: str) -> None:
    (tmp_path / name).write_text(text)
    assert recorded_release(tmp_path) == release
