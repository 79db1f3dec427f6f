"""Kubernetes' own kinds, of every known release: the packaged file, read when somebody asks for a document.

``tests/converters/record_release_documents.py`` writes the file from the published documents.
"""

from __future__ import annotations

from functools import cache
from pkgutil import get_data
from typing import Final

from specmux_converters.release_documents import ReleaseDocuments

FILE: Final = "kubernetes_releases.json.xz"


@cache
def built_in_releases() -> ReleaseDocuments:
    return ReleaseDocuments(get_data(__package__, FILE) or b"")
