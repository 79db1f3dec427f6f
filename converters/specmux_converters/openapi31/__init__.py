"""OpenAPI 3.1, read as 3.0. What lowers is imported with the first document that takes it."""

from __future__ import annotations

from specmux_converters.document import Document


def is_openapi_31(document: Document) -> bool:
    version = document.get("openapi")
    return isinstance(version, str) and (version == "3.1" or version.startswith("3.1."))
