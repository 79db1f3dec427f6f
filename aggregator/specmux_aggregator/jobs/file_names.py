"""Which group-version a document file holds, told by its name. Pure."""

from __future__ import annotations

import re
from typing import Final

from specmux_converters.group_versions import GroupVersion

SUFFIXES: Final = (".json", ".yaml", ".yml", ".cbor", ".pb")
COMPRESSED: Final = ".gz"

KEY: Final = re.compile(
    r"api|apis|version|logs|api/[^/]+|apis/[^/]+(/[^/]+)?|openid/[^/]+(/[^/]+)?|\.well-known(/[^/]+)?|logs/[^/]+"
)
"""Keys that apiservers publish (spec: group-versions, and what stands beside them)."""


def is_document_name(name: str) -> bool:
    return name.removesuffix(COMPRESSED).endswith(SUFFIXES)


def group_version_of_file(relative: str) -> GroupVersion | None:
    """The discovery key that a path below the directory spells, or None.

    Two spellings: ``apis/apps/v1.json``, and Kubernetes' own ``apis__apps__v1_openapi.json``
    (kubernetes/kubernetes, api/openapi-spec/v3). Both may end in ``.gz``.
    """
    stem = relative.removesuffix(COMPRESSED)
    for suffix in SUFFIXES:
        stem = stem.removesuffix(suffix)
    folder, slash, name = stem.rpartition("/")
    if name.endswith("_openapi"):
        name = name.removesuffix("_openapi").replace("__", "/")
    key = f"{folder}{slash}{name}"
    return GroupVersion(key) if KEY.fullmatch(key) else None
