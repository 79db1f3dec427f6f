"""Read the documents of a folder or a file, for the functions of ``queries``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specmux_aggregator.errors import SpecmuxError
from specmux_tools.errors import SchemasError
from specmux_tools.sources.disk.files import FileSource


def load(path: str | os.PathLike[str]) -> Mapping[str, Mapping[str, Any]]:
    """The documents of a folder or a file by group-version, as ``validate``, ``explain``, ``search`` and
    ``diff`` take them.

    Swagger 2.0 is converted, and CustomResourceDefinitions are built into documents. Raises SchemasError for
    a file that cannot be read as one of these, and for a folder without any.
    """
    where = Path(path)
    try:
        source = FileSource.of(directories=[where]) if where.is_dir() else FileSource.of(files=[where])
        loaded = source.load()
    except SpecmuxError as error:
        raise SchemasError(str(error)) from error
    if loaded.unread:
        rest = len(loaded.unread) - 1
        raise SchemasError(f"{loaded.unread[0]}{f', and {rest} more' if rest else ''}")
    return {str(name): document for name, document in loaded.documents.documents.items()}
