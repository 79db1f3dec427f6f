"""Recognize the kind of a parsed document."""

from __future__ import annotations

from enum import Enum
from typing import Final

from specmux_converters.document import Document

SWAGGER_VERSIONS: Final = ("2.0", 2.0)
"""The number is what YAML makes of an unquoted 2.0."""


class DocumentKind(Enum):
    SWAGGER_2 = "Swagger 2.0"
    OPENAPI_3 = "OpenAPI 3.0"
    CRDS = "CustomResourceDefinitions"


def kind_of(document: Document) -> DocumentKind | None:
    if document.get("swagger") in SWAGGER_VERSIONS:
        return DocumentKind.SWAGGER_2
    version = document.get("openapi")
    return DocumentKind.OPENAPI_3 if isinstance(version, str) and version.startswith("3.") else None
