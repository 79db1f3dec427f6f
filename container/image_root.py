"""Gathers the files of the image: an environment, the interpreter under it, and the libraries of both.

Everything keeps its path. What is not gathered is not there: no shell, no package manager, no compiler, no
modules that a service has no use for. Run by the Dockerfile, and by tests/integration/test_image.py.

    python container/image_root.py ENVIRONMENT IMAGE_ROOT
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from py_compile import PycInvalidationMode

USER = 65532

UNUSED = shutil.ignore_patterns(
    "__pycache__",
    "config-*",
    "dist-packages",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "site-packages",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
    # Extensions that would bring terminal, window and database libraries along, or serve CPython's own tests.
    "_ctypes_test*",
    "_curses*",
    "_dbm*",
    "_gdbm*",
    "_test*",
    "_tkinter*",
    "nis*",
    "readline*",
    "xx*",
)
"""Of the standard library."""

ACCOUNTS = {
    "etc/passwd": f"nonroot:x:{USER}:{USER}:nonroot:/nonexistent:/nonexistent\n",
    "etc/group": f"nonroot:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}

MOUNT_POINTS = ("dev", "etc/specmux", "proc", "sys", "tmp", "var/cache/specmux")

AS_THEY_ARE = ("/etc/os-release", "/etc/ssl/certs/ca-certificates.crt")

TIME_ZONES = Path("/usr/share/zoneinfo")
"""Rules of custom resources name time zones."""

OPENED_BY_NAME = ("libgcc_s.so.1",)
"""Libraries that the C library opens when it first needs them: this one when a thread is ended."""


def main(environment: Path, root: Path) -> None:
    gather_environment(environment, root)
    gather_interpreter(environment, root)
    libraries = gather_libraries(root)
    for name in AS_THEY_ARE:
        gather_file(Path(name).resolve(), root, as_path=Path(name))
    if TIME_ZONES.is_dir():
        old_names = shutil.ignore_patterns("posix", "right")
        shutil.copytree(TIME_ZONES, place(root, TIME_ZONES), symlinks=True, ignore=old_names)
    for name, text in ACCOUNTS.items():
        place(root, Path("/") / name).write_text(text)
    for name in MOUNT_POINTS:
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "var/cache/specmux").chmod(0o1777)
    describe_packages(libraries, root)
    # Nothing can be compiled later, where the root is read-only.
    compileall.compile_dir(
        root,
        quiet=2,
        stripdir=str(root),
        prependdir="/",
        workers=0,
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )
    run("ldconfig", "-r", str(root), is_vital=True)


def place(root: Path, path: Path) -> Path:
    """Where an absolute path lies in the image; its folder is there afterwards."""
    placed = root / path.relative_to("/")
    placed.parent.mkdir(parents=True, exist_ok=True)
    return placed


def gather_file(source: Path, root: Path, *, as_path: Path) -> None:
    shutil.copy2(source, place(root, as_path))


def gather_environment(environment: Path, root: Path) -> None:
    def unused(folder: str, names: list[str]) -> Iterable[str]:
        if Path(folder) == environment / "bin":
            return [name for name in names if not re.fullmatch(r"specmux|python[0-9.]*", name)]
        return [name for name in names if name == "__pycache__"]

    shutil.copytree(environment, place(root, environment), symlinks=True, ignore=unused)


def gather_interpreter(environment: Path, root: Path) -> None:
    link = environment / "bin" / "python"
    while link.is_symlink():
        target = Path(os.path.normpath(link.parent / link.readlink()))
        if not target.is_relative_to(environment):
            placed = place(root, target)
            if target.is_symlink():
                placed.symlink_to(target.readlink())
            else:
                shutil.copy2(target, placed)
        link = target
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, place(root, library), symlinks=True, ignore=UNUSED)


def gather_libraries(root: Path) -> set[Path]:
    """Copy every shared library that what was gathered is linked with; returns where they were found."""
    programs = [Path("/") / path.relative_to(root) for path in sorted(root.rglob("*")) if is_program(path)]
    needed = set(linked(programs))
    (c_library,) = {path.parent for path in needed if path.name == "libc.so.6"}
    needed |= {c_library / name for name in OPENED_BY_NAME}
    for path in needed:
        if not (root / path.relative_to("/")).exists():
            gather_file(path.resolve(), root, as_path=path)
    folders = sorted({str(path.parent) for path in needed})
    place(root, Path("/etc/ld.so.conf")).write_text("\n".join(folders) + "\n")
    return needed


def is_program(path: Path) -> bool:
    if not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def linked(programs: list[Path]) -> Iterator[Path]:
    said = run("ldd", *map(str, programs))
    lost = re.findall(r"(\S+) => not found", said)
    if lost:
        raise SystemExit(f"not found: {', '.join(sorted(set(lost)))}")
    for path in re.findall(r"^\t(?:\S+ => )?(/\S+) \(0x", said, re.MULTILINE):
        yield Path(path)


def describe_packages(libraries: set[Path], root: Path) -> None:
    """Leave Debian's word on the packages of the libraries where scanners for known faults look for it."""
    if shutil.which("dpkg-query") is None:
        return
    for library in libraries:
        for path in (library, library.resolve()):
            owner = run("dpkg-query", "--search", str(path)).partition(": ")[0]
            if owner:
                name = owner.partition(":")[0]
                status = place(root, Path("/var/lib/dpkg/status.d") / name)
                status.write_text(run("dpkg-query", "--status", owner))
                break


def run(name: str, *arguments: str, is_vital: bool = False) -> str:
    """What a command of the system prints. Its failure counts where it ``is_vital``."""
    command = shutil.which(name) or f"/usr/sbin/{name}"
    done = subprocess.run([command, *arguments], stdout=subprocess.PIPE, text=True, check=is_vital)  # noqa: S603
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute())
