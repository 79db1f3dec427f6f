"""Walk and read the files below a folder, so that every command and every origin hides the same files and
reads as much; and the group-version of a document file, from its name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from specmux_converters.lazy.patterns import pattern

if TYPE_CHECKING:  # imported where a file is named
    from specmux_converters.group_versions import GroupVersion

LAYOUT: Final = "oci:"
"""Before the path of an OCI image layout, where a folder could be named as well."""

WELL_KNOWN: Final = ".well-known"
"""A key of Kubernetes; any other hidden folder is a ConfigMap's "..data" or a repository."""

SUFFIXES: Final = (".json", ".yaml", ".yml", ".cbor", ".pb")
COMPRESSED: Final = ".gz"

KEY: Final = pattern(
    r"api|apis|version|logs|api/[^/]+|apis/[^/]+(/[^/]+)?|openid/[^/]+(/[^/]+)?|\.well-known(/[^/]+)?|logs/[^/]+"
)
"""Discovery keys of apiservers (spec: group-versions and further documents)."""


def _raise(error: OSError) -> NoReturn:
    raise error


def walk_files(
    folder: Path,
    is_wanted: Callable[[str], bool],
    *,
    refuse: Callable[[OSError], None] = _raise,
) -> Iterator[Path]:
    """Files with a wanted name: those of a folder sorted by name, then those of the folders below it.

    Skips hidden folders and links to folders, so files of a mounted ConfigMap are seen only through their
    visible links. ``refuse`` is called for a folder that cannot be read, including the first.
    """
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        for name in sorted(names):
            path = Path(parent, name)
            if is_wanted(name) and path.is_file():
                yield path


def locate(path: Path, folder: Path) -> Path:
    """The path, or that of a layout, if it starts at ``folder``."""
    text = str(path)
    return Path(f"{LAYOUT}{folder / text.removeprefix(LAYOUT)}") if is_layout(path) else folder / path


def is_layout(path: Path) -> bool:
    return str(path).startswith(LAYOUT)


def is_hidden(folder: str) -> bool:
    return folder.startswith(".") and folder != WELL_KNOWN


def read_at_most(path: Path, most: int) -> bytes:
    """The file's bytes; ``most`` and one more of a larger one. Raises OSError."""
    with path.open("rb") as file:
        # Python allocates all that it is asked to read: 64 MiB, which a process with a limit may not have.
        size = os.fstat(file.fileno()).st_size
        data = file.read(min(size, most) + 1)
        return data + file.read(most + 1 - len(data)) if len(data) > size else data  # a pipe, or it grew


def is_document_name(name: str) -> bool:
    return name.removesuffix(COMPRESSED).endswith(SUFFIXES)


def group_version_of_file(relative: str) -> GroupVersion | None:
    """The discovery key in a path below the directory; None if there is none.

    Two forms: ``apis/apps/v1.json``, and ``apis__apps__v1_openapi.json`` of kubernetes/kubernetes
    (api/openapi-spec/v3). Both may end in ``.gz``.
    """
    from specmux_converters.group_versions import GroupVersion

    stem = relative.removesuffix(COMPRESSED)
    for suffix in SUFFIXES:
        stem = stem.removesuffix(suffix)
    folder, slash, name = stem.rpartition("/")
    if name.endswith("_openapi"):
        name = name.removesuffix("_openapi").replace("__", "/")
    key = f"{folder}{slash}{name}"
    return GroupVersion(key) if KEY.fullmatch(key) else None
