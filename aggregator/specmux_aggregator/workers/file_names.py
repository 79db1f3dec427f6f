"""The group-version of a document file, from its name. Pure."""

from __future__ import annotations

from typing import Final

from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.patterns import pattern

SUFFIXES: Final = (".json", ".yaml", ".yml", ".cbor", ".pb")
COMPRESSED: Final = ".gz"

KEY: Final = pattern(
    r"api|apis|version|logs|api/[^/]+|apis/[^/]+(/[^/]+)?|openid/[^/]+(/[^/]+)?|\.well-known(/[^/]+)?|logs/[^/]+"
)
"""Discovery keys of apiservers (spec: group-versions and further documents)."""


def is_document_name(name: str) -> bool:
    return name.removesuffix(COMPRESSED).endswith(SUFFIXES)


def group_version_of_file(relative: str) -> GroupVersion | None:
    """The discovery key in a path below the directory; None if there is none.

    Two forms: ``apis/apps/v1.json``, and ``apis__apps__v1_openapi.json`` of kubernetes/kubernetes
    (api/openapi-spec/v3). Both may end in ``.gz``.
    """
    stem = relative.removesuffix(COMPRESSED)
    for suffix in SUFFIXES:
        stem = stem.removesuffix(suffix)
    folder, slash, name = stem.rpartition("/")
    if name.endswith("_openapi"):
        name = name.removesuffix("_openapi").replace("__", "/")
    key = f"{folder}{slash}{name}"
    return GroupVersion(key) if KEY.fullmatch(key) else None
