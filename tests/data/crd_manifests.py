"""CRD manifests of a folder, as the converters recognise them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from shared_data import read
from specmux_converters.document import Document
from specmux_converters.errors import ConverterError
from specmux_converters.recognise import DocumentKind, recognise


def manifests(folder: Path) -> Iterator[Document]:
    for path in sorted(folder.rglob("*.yaml*")):
        try:
            found = recognise(read(path))
        except ConverterError:
            continue  # a kustomization, an admission policy
        if found.kind is DocumentKind.CRDS:
            yield from found.documents
