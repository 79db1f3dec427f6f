"""One version in all parts of a release, and one setting for the repository's address."""

from __future__ import annotations

import io
import json
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from specmux_aggregator.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
RELEASE: dict[str, Any] = runpy.run_path(str(ROOT / "release.py"))
FILES = {
    "pyproject.toml",
    "aggregator/specmux_aggregator/version.py",
    *(line.file for line in RELEASE["LINES"]),
}
HOME = "https://forge.example/owner/specmux"


def packed(path: Path, members: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the files that have the version or the address."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def release(dist: Path, **versions: str) -> list[str]:
    """The faults of a release whose parts have ``versions``, else the package's."""

    def of(part: str) -> str:
        return versions.get(part, VERSION)

    dist.mkdir()
    with zipfile.ZipFile(dist / "specmux-x-py3-none-any.whl", "w") as wheel:
        wheel.writestr("specmux-x.dist-info/METADATA", f"Name: specmux\nVersion: {of('wheel')}\n")
        wheel.writestr("specmux_aggregator/version.py", f'VERSION: Final = "{of("program")}"\n')
    chart = f"version: {of('chart')}\nappVersion: {of('app')}\n"
    packed(dist / "specmux-x.tgz", {"specmux/Chart.yaml": chart})
    recipe = {
        "Dockerfile": f'LABEL org.opencontainers.image.version="{of("label")}"\n',
        "aggregator/specmux_aggregator/version.py": f'VERSION: Final = "{of("image")}"\n',
    }
    packed(dist / "specmux-x-image.tar.gz", recipe)
    bill = {"metadata": {"component": {"name": "specmux", "version": of("bill")}}}
    (dist / "specmux.cdx.json").write_text(json.dumps(bill))
    faults: list[str] = RELEASE["faults"](dist, VERSION)
    return faults


def test_release_of_one_version_has_no_faults(tmp_path: Path) -> None:
    assert release(tmp_path / "dist") == []


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("wheel", "wheel"),
        ("program", "specmux version"),
        ("chart", "chart"),
        ("app", "chart's appVersion"),
        ("label", "image's label"),
        ("image", "image"),
        ("bill", "bill of materials"),
    ],
)
def test_part_of_another_version_is_named(tmp_path: Path, part: str, name: str) -> None:
    assert release(tmp_path / "dist", **{part: "9.9.9"}) == [f"{name} has version 9.9.9, not {VERSION}"]


def test_files_have_the_version_and_the_address_of_the_settings() -> None:
    assert RELEASE["outdated"](ROOT) == []
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text()


def test_changed_version_is_written_everywhere(checkout: Path) -> None:
    replace(checkout / "aggregator/specmux_aggregator/version.py", f'"{VERSION}"', '"1.0.0rc1"')
    behind = {line.partition(":")[0] for line in RELEASE["outdated"](checkout)}
    assert behind == {"README.md", "Dockerfile", "helm/specmux/Chart.yaml"}
    assert RELEASE["main"]("write", checkout) == 0
    assert RELEASE["main"]("check", checkout) == 0
    chart = yaml.safe_load((checkout / "helm/specmux/Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == ("1.0.0rc1", "1.0.0rc1")
    assert 'image.version="1.0.0rc1"' in (checkout / "Dockerfile").read_text()


def test_address_is_written_where_it_is_needed_and_taken_away_again(checkout: Path) -> None:
    before = {name: (checkout / name).read_text() for name in FILES}
    replace(checkout / "pyproject.toml", 'home = ""', f'home = "{HOME}/"')
    assert RELEASE["main"]("check", checkout) == 1
    assert RELEASE["main"]("write", checkout) == 0
    chart = yaml.safe_load((checkout / "helm/specmux/Chart.yaml").read_text())
    assert (chart["home"], chart["sources"]) == (HOME, [HOME])
    values = yaml.safe_load((checkout / "helm/specmux/values.yaml").read_text())
    assert values["prometheusRule"]["runbooks"] == f"{HOME}/blob/main/docs/alerts.md"
    (hook,) = yaml.safe_load((checkout / "examples/pre-commit-config.yaml").read_text())["repos"]
    assert (hook["repo"], hook["rev"]) == (HOME, f"v{VERSION}")
    source = yaml.safe_load((checkout / "examples/argocd-application.yaml").read_text())["spec"]["source"]
    assert (source["repoURL"], source["targetRevision"]) == (HOME, f"v{VERSION}")
    assert f'image.source="{HOME}"\n' in (checkout / "Dockerfile").read_text()
    assert not any("git.example.org" in (checkout / name).read_text() for name in FILES)
    replace(checkout / "pyproject.toml", f'home = "{HOME}/"', 'home = ""')
    assert RELEASE["main"]("write", checkout) == 0
    assert {name: (checkout / name).read_text() for name in FILES} == before


def test_line_that_is_gone_is_an_error(checkout: Path) -> None:
    replace(checkout / "helm/specmux/values.yaml", "  runbooks:", "  books:")
    with pytest.raises(ValueError, match=r"helm/specmux/values\.yaml has 0 lines like"):
        RELEASE["generated"](checkout)


def test_image_recipe_has_what_the_dockerfile_copies_and_equal_bytes(tmp_path: Path) -> None:
    recipe = RELEASE["image_recipe"](ROOT)
    assert recipe == RELEASE["image_recipe"](ROOT)
    with tarfile.open(fileobj=io.BytesIO(recipe)) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path, filter="data")
    assert {"Dockerfile", "pyproject.toml", "hatch_build.py", "container/image_root.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests", "docs"))]
    done = subprocess.run(
        [sys.executable, "-c", "import specmux_aggregator.version as it; print(it.VERSION, it.__file__)"],
        env={"PYTHONPATH": str(tmp_path / "aggregator")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [VERSION, str(tmp_path / "aggregator/specmux_aggregator/version.py")]
