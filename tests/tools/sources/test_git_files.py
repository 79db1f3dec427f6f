"""``git:REV:PATH`` by git itself, from any folder of a repository."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from converters.crd.widgets import widget
from specmux_aggregator.cli import main
from specmux_tools.sources.disk.git_files import git_files
from specmux_tools.sources.source import FileRefused

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def committed(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    return root


def definition(kind: str, **properties: object) -> str:
    return yaml.safe_dump(
        widget({"type": "object", "properties": properties}, kind=kind, plural=f"{kind.lower()}s")
    )


FILES = {
    "crds/root.yaml": "root",
    "api/one.yaml": "one",
    "api/two.yaml": "two",
    "api/api/one.yaml": "inner",
    "api/a b/ü.yaml": "odd",
    "api/.github/hidden.yaml": "hidden",
}
BELOW_API = {"a b/ü.yaml": b"odd", "api/one.yaml": b"inner", "one.yaml": b"one", "two.yaml": b"two"}


@pytest.mark.parametrize(
    ("folder", "path", "found"),
    [
        (".", "api", BELOW_API),
        (".", "./api/", BELOW_API),
        (".", "api/../api/api", {"one.yaml": b"inner"}),
        ("api", ".", BELOW_API),
        ("api", "", BELOW_API),
        ("api", "./", BELOW_API),
        ("api", "api", {"one.yaml": b"inner"}),
        ("api", "../crds", {"root.yaml": b"root"}),
        ("api/api", ".", {"one.yaml": b"inner"}),
        ("api/api", "..", BELOW_API),
        ("api/api", "../../crds/root.yaml", {"git:HEAD:../../crds/root.yaml": b"root"}),
        ("api/a b", "ü.yaml", {"git:HEAD:ü.yaml": b"odd"}),
        ("api", "nowhere", None),
    ],
)
def test_paths_are_relative_to_the_current_folder(
    folder: str, path: str, found: dict[str, bytes] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(committed(tmp_path, FILES) / folder)
    assert git_files(f"git:HEAD:{path}") == found


@pytest.mark.parametrize("path", ["crds", "crds/root.yaml", "api/one.yaml", "/crds/"])
def test_a_path_from_the_root_is_no_empty_side(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(committed(tmp_path, {**FILES, "svc/x.yaml": "x"}) / "svc")
    with pytest.raises(FileRefused, match="the repository's root has it"):
        git_files(f"git:HEAD:{path}")


def test_links_are_followed_as_in_the_working_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "api").mkdir()
    for name, target in (("linked.yaml", "../crds/root.yaml"), ("all", "../crds"), ("gone.yaml", "no.yaml")):
        (tmp_path / "api" / name).symlink_to(target)
    (tmp_path / "shortcut").symlink_to("api")
    monkeypatch.chdir(committed(tmp_path, {"crds/root.yaml": "root"}) / "api")
    assert git_files("git:HEAD:.") == {"linked.yaml": b"root"}
    assert git_files("git:HEAD:../shortcut") == {"linked.yaml": b"root"}
    assert git_files("git:HEAD:all") == {"root.yaml": b"root"}
    Path("outside.yaml").symlink_to("/etc/hostname.yaml")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "two")
    with pytest.raises(FileRefused, match=r"outside\.yaml: a link that leads out of the revision"):
        git_files("git:HEAD:.")


@pytest.mark.parametrize("command", ["check", "convert", "diff"])
def test_a_compressed_file_of_a_revision_is_unpacked(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.yaml.gz").write_bytes(gzip.compress(definition("One").encode()))
    monkeypatch.chdir(committed(tmp_path, {}))
    words = ["git:HEAD:."] * (2 if command == "diff" else 1)
    result = CliRunner().invoke(main, [command, *words])
    assert result.exit_code == 0, result.output


def test_a_submodule_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = committed(tmp_path / "other", {"x.yaml": "x"})
    root = committed(tmp_path / "root", {"crds/a.yaml": "a"})
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "crds/vendored")
    git(root, "commit", "-qm", "two")
    monkeypatch.chdir(root / "crds")
    assert git_files("git:HEAD:.") == {"a.yaml": b"a"}
    assert "vendored is a submodule" in capsys.readouterr().err


@pytest.mark.parametrize(("folder", "words"), [(".", ("git:HEAD:api", "api")), ("api", ("git:HEAD:.", "."))])
def test_diff_reads_the_whole_folder_from_anywhere(
    folder: str, words: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``api/api`` is called as the current folder, so git listed that alone."""
    one, two = definition("One"), definition("Two", x={"type": "integer"})
    committed(tmp_path, {"api/one.yaml": one, "api/two.yaml": two, "api/api/one.yaml": one})
    (tmp_path / "api/two.yaml").write_text(definition("Two", x={"type": "string"}))
    monkeypatch.chdir(tmp_path / folder)
    result = CliRunner().invoke(main, ["diff", *words, "-o", "github"])
    assert (result.exit_code, result.output.count("type-changed")) == (1, 1), result.output
