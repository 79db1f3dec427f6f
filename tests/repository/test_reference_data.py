"""``make reference`` takes what has the recorded hash, and names the rest."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

import reference_data
import shared_data
from specmux_aggregator.built_in_releases import built_in_releases

NAME = "example.com/Big@v1.0.0"


def module(folder: Path, sum: str) -> Path:
    path = folder / "modules.toml"
    path.write_text(
        f'[[module]]\npath = "example.com/Big"\nversion = "v1.0.0"\nsum = "{sum}"\n'
        '[module.files]\n"crds/" = "data/crds/"\n"large.json" = "data/large.json"\n"v3/" = "data/v3/"\n'
    )
    return path


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The hash of the one module that it has."""
    file = tmp_path / "proxy/example.com/!big/@v/v1.0.0.zip"
    file.parent.mkdir(parents=True)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{NAME}/crds/a.yaml", "a: 1\n")
        archive.writestr(f"{NAME}/crds/a/b.json", "{}")
        archive.writestr(f"{NAME}/crds/a.go", "package a\n")
        for key in ("api__v1", "apis__apps__v1", "apis__apps", "version"):
            archive.writestr(f"{NAME}/v3/{key}_openapi.json", "{}")
        archive.writestr(f"{NAME}/large.json", '"' + "x" * 30_000 + '"')
    monkeypatch.setattr(reference_data, "PROXY", (tmp_path / "proxy").as_uri())
    monkeypatch.setattr(reference_data, "FETCHED", tmp_path / "fetched")
    with zipfile.ZipFile(file) as archive:
        return reference_data.hash_of(archive)


def test_files_of_a_module_are_taken(proxy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_data, "MODULES", module(tmp_path, proxy))
    assert list(reference_data.fetch()) == []
    fetched = tmp_path / "fetched/data"
    assert {str(path.relative_to(fetched)) for path in fetched.rglob("*.*")} == {
        "crds/a.yaml",
        "crds/a/b.json",
        "large.json.gz",
        "v3/api/v1.json",
        "v3/apis/apps/v1.json",
    }
    assert len(shared_data.read(fetched / "large.json.gz")) == 30_002


def test_module_with_another_hash_is_named_and_nothing_of_it_is_taken(
    proxy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_data, "MODULES", module(tmp_path, "h1:other"))
    (said,) = reference_data.fetch()
    assert said.startswith(f"{NAME} has the hash {proxy}, not h1:other")
    assert not (tmp_path / "fetched").exists()


def test_module_that_cannot_be_had_is_named(
    proxy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_data, "MODULES", module(tmp_path, proxy))
    monkeypatch.setattr(reference_data, "PROXY", (tmp_path / "nowhere").as_uri())
    (said,) = reference_data.fetch()
    assert said.startswith(f"{NAME} could not be had from file:")


def test_a_clone_has_every_release_and_the_recorded_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_data, "ASSEMBLED", tmp_path / "assembled")
    monkeypatch.setattr(reference_data, "FETCHED", tmp_path / "fetched")
    folder = reference_data.assembled()
    assert reference_data.assembled() == folder
    assert (folder / "golden/field-validation.jsonl").is_file()
    for release in built_in_releases().releases:
        assert (folder / "data/k8s-pairs" / release / "v3/api/v1.json.gz").is_file()


def test_a_run_does_not_change_the_folder_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_data, "ASSEMBLED", tmp_path / "assembled")
    monkeypatch.setattr(reference_data, "FETCHED", fetched := tmp_path / "fetched")
    monkeypatch.setattr(reference_data, "_write_releases", lambda folder: None)
    first = reference_data.assembled()
    reference_data.write(fetched / "data/a.json", b"1")
    second = reference_data.assembled()
    assert ((second / "data/a.json").read_bytes(), (first / "data/a.json").exists()) == (b"1", False)
    assert (first / "golden/field-validation.jsonl").is_file()

    def assembled_meanwhile(folder: Path) -> None:
        monkeypatch.setattr(reference_data, "_write_releases", lambda folder: None)
        reference_data.assembled()

    reference_data.write(fetched / "data/a.json", b"2")
    monkeypatch.setattr(reference_data, "_write_releases", assembled_meanwhile)
    third = reference_data.assembled()
    assert (third / "data/a.json").read_bytes() == b"2"
    assert set((tmp_path / "assembled").iterdir()) == {first, second, third}

    os.utime(first, (0, 0))
    reference_data.assembled()
    assert set((tmp_path / "assembled").iterdir()) == {second, third}
