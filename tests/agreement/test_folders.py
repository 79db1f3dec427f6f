"""Every command and the service see the same files below a folder: a mounted ConfigMap, a repository."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from data.compared import document
from specmux_aggregator.backend_sources.files import Folder
from specmux_aggregator.cli import main
from specmux_aggregator.folders import walk_files
from specmux_tools.sources.disk.files import FileSource

MANIFEST = (
    b"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: ws.a.io}\n"
    b"spec:\n  group: a.io\n  scope: Namespaced\n  names: {kind: W, plural: ws}\n"
    b"  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n"
)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.mktemp("home")
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(folder))


def mounted(folder: Path, **files: bytes) -> Path:
    """As the kubelet mounts a ConfigMap: files are links through the link ``..data``."""
    real = folder / "..2026_11_23"
    real.mkdir(parents=True)
    (folder / "..data").symlink_to(real.name)
    for name, data in files.items():
        file = name.replace("_", ".")
        (real / file).write_bytes(data)
        (folder / file).symlink_to(Path("..data", file))
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], prog_name="specmux")


@pytest.fixture
def config_map(tmp_path: Path) -> Path:
    return mounted(tmp_path / "cm", v1_json=orjson.dumps(document({"type": "object"})))


def test_a_mounted_file_is_one_document_for_every_command(config_map: Path, tmp_path: Path) -> None:
    assert run("get", "--directory", config_map).stdout == "apis/example.com/v1\n"
    assert "1 document:" in run("check", config_map).output
    converted = run("convert", config_map, "--split", tmp_path / "out")
    assert converted.exit_code == 0, converted.output
    assert run("merge", config_map).exit_code == 0
    assert run("diff", config_map, config_map).exit_code == 0
    assert list(asyncio.run(Folder(config_map, max_files=9, max_bytes=9).scan())) == ["v1.json"]


def test_a_mounted_manifest_is_validated_once(tmp_path: Path) -> None:
    folder = mounted(tmp_path / "cm", w_yaml=b"apiVersion: a.io/v1\nkind: W\nmetadata: {name: x}\n")
    (tmp_path / "crd.yaml").write_bytes(MANIFEST)
    told = run("validate", folder, "--file", tmp_path / "crd.yaml", "--summary").output
    assert "1 object in 1 file: 1 valid" in told


def test_a_repository_is_skipped_and_well_known_is_not(tmp_path: Path) -> None:
    for name in (".git/x.json", ".well-known/openid.json", "apis/apps/v1.json", "apis/.hidden/v1.json"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(orjson.dumps(document({"type": "object"})))
    seen = [".well-known/openid.json", "apis/apps/v1.json"]
    walk = walk_files(tmp_path, lambda name: name.endswith(".json"))
    assert sorted(path.relative_to(tmp_path).as_posix() for path in walk) == seen
    assert list(asyncio.run(Folder(tmp_path, max_files=9, max_bytes=9).scan())) == seen
    assert len(FileSource(directories=[tmp_path]).group_versions()) == 2
    assert "2 documents:" in run("check", tmp_path, "--jobs", 1).output


def test_a_folder_that_cannot_be_read_is_refused_by_default(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(walk_files(tmp_path / "none", lambda _: True))
