"""A release: one version and one address in every file that has them, and what is published.

* ``release.py write`` writes the version (specmux_aggregator/version.py) and the address of the repository
  (``[tool.specmux] home`` of pyproject.toml) into the files of LINES; ``release.py check`` names those that
  are out of date. The package and the site take both by themselves (hatch_build.py, docs/links.py).
* ``release.py build`` puts what is published into dist/, beside the bill of materials of ``make sbom``, and
  ends with 1 unless all parts have that one version. ``make release`` runs all of it.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class GeneratedLine:
    """A line of a file that has the version or the address."""

    file: str
    pattern: str
    without_home: str
    with_home: str = ""
    """The same as ``without_home`` if empty."""


LINES: Final = (
    GeneratedLine("README.md", r"^\*\*Status\.\*\* [^,]+,", "**Status.** {version},"),
    GeneratedLine("helm/specmux/Chart.yaml", r"^version: .*$", "version: {version}"),
    GeneratedLine(
        "helm/specmux/Chart.yaml",
        r"^appVersion: .*$(?:\nhome: .*\nsources: .*$)?",
        "appVersion: {version}",
        "appVersion: {version}\nhome: {home}\nsources: [{home}]",
    ),
    GeneratedLine(
        "helm/specmux/values.yaml",
        r"^  runbooks: .*$",
        '  runbooks: ""',
        '  runbooks: "{home}/blob/main/docs/alerts.md"',
    ),
    GeneratedLine(
        "Dockerfile",
        r'(?<=image\.version=")[^"]*"(?: \\\n +org\.opencontainers\.image\.source="[^"]*")?',
        '{version}"',
        '{version}" \\\n      org.opencontainers.image.source="{home}"',
    ),
    GeneratedLine(
        "examples/pre-commit-config.yaml",
        r"^  - repo: .*$",
        "  - repo: https://git.example.org/platform/specmux.git  # where you keep specmux",
        "  - repo: {home}",
    ),
    GeneratedLine(
        "examples/pre-commit-config.yaml",
        r"^    rev: .*$",
        "    rev: REVISION  # a commit's hash",
        "    rev: v{version}",
    ),
    GeneratedLine(
        "examples/argocd-application.yaml",
        r"^    repoURL: .*$",
        "    repoURL: https://git.example.org/platform/specmux.git  # where you keep this repository",
        "    repoURL: {home}",
    ),
    GeneratedLine(
        "examples/argocd-application.yaml",
        r"^    targetRevision: .*$",
        "    targetRevision: main",
        "    targetRevision: v{version}",
    ),
)


def version_of(text: str) -> str:
    """The version that the text of version.py has."""
    found = re.search(r'^VERSION: Final = "([^"]+)"', text, re.MULTILINE)
    if found is None:
        raise ValueError("version.py has no VERSION")
    return found[1]


def generated(root: Path) -> dict[Path, str]:
    """File of LINES → the text it should have."""
    version = version_of((root / "aggregator/specmux_aggregator/version.py").read_text())
    home = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["specmux"]["home"].rstrip("/")
    texts = {root / line.file: (root / line.file).read_text() for line in LINES}
    for line in LINES:
        path = root / line.file
        form = line.with_home if home and line.with_home else line.without_home
        text = form.format(version=version, home=home).replace("\\", r"\\")
        texts[path], count = re.subn(line.pattern, text, texts[path], flags=re.MULTILINE)
        if count != 1:
            raise ValueError(f"{line.file} has {count} lines like {line.pattern}")
    return texts


def outdated(root: Path) -> list[str]:
    return [
        f"{path.relative_to(root)}: run release.py write"
        for path, text in generated(root).items()
        if path.read_text() != text
    ]


def image_recipe(root: Path) -> bytes:
    """The Dockerfile with all that it copies, as ``docker build -`` takes it. Equal sources, equal bytes."""
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (root / "Dockerfile").read_text(), re.MULTILINE)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in sorted({"Dockerfile", *(name for line in copied for name in line.split())}):
            archive.add(root / name, name, filter=_plain)
    return gzip.compress(packed.getvalue(), mtime=0)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if "__pycache__" in member.name:
        return None
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def versions(dist: Path) -> Iterator[tuple[str, str]]:
    """Each part of the release in ``dist``, and the version it has."""
    (wheel,) = dist.glob("specmux-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        found = re.search(r"^Version: (.+)$", archive.read(metadata).decode(), re.MULTILINE)
        yield "wheel", found[1] if found else ""
        yield "specmux version", version_of(archive.read("specmux_aggregator/version.py").decode())
    (chart,) = dist.glob("specmux-*.tgz")
    with tarfile.open(chart) as archive:
        described = yaml.safe_load(_member(archive, "specmux/Chart.yaml"))
    yield "chart", described["version"]
    yield "chart's appVersion", str(described["appVersion"])
    (recipe,) = dist.glob("specmux-*-image.tar.gz")
    with tarfile.open(recipe) as archive:
        label = re.search(r'image\.version="([^"]*)"', _member(archive, "Dockerfile"))
        yield "image's label", label[1] if label else ""
        yield "image", version_of(_member(archive, "aggregator/specmux_aggregator/version.py"))
    bill = json.loads((dist / "specmux.cdx.json").read_text())
    yield "bill of materials", bill["metadata"]["component"]["version"]


def _member(archive: tarfile.TarFile, name: str) -> str:
    file = archive.extractfile(name)
    if file is None:
        raise ValueError(f"{name} is no file")
    return file.read().decode()


def faults(dist: Path, version: str) -> list[str]:
    """The parts of the release that have another version."""
    return [
        f"{part} has version {found}, not {version}" for part, found in versions(dist) if found != version
    ]


def build(root: Path, dist: Path) -> None:
    """The wheel that ``make sbom`` described, the chart, and the image's recipe."""
    version = version_of((root / "aggregator/specmux_aggregator/version.py").read_text())
    for old in dist.glob("specmux-*"):
        old.unlink()
    (wheel,) = (root / "build/sbom").glob("specmux-*.whl")
    shutil.copy(wheel, dist)
    helm = [str(Path(sys.executable).with_name("helm")), "package", "--destination", str(dist)]
    subprocess.run([*helm, str(root / "helm/specmux")], check=True, stdout=subprocess.DEVNULL)
    (dist / f"specmux-{version}-image.tar.gz").write_bytes(image_recipe(root))


def main(task: str, root: Path = ROOT) -> int:
    dist, found = root / "dist", []
    match task:
        case "write":
            for path, text in generated(root).items():
                path.write_text(text)
        case "check":
            found = outdated(root)
        case "build":
            version = version_of((root / "aggregator/specmux_aggregator/version.py").read_text())
            build(root, dist)
            found = outdated(root) + faults(dist, version)
            if not found:
                names = ", ".join(sorted(path.name for path in dist.glob("specmux*")))
                print(f"{version}: {names}")
        case _:
            found = ["usage: release.py write|check|build"]
    print("".join(f"{line}\n" for line in found), end="", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if sys.argv[1:] else ""))
