"""OpenAPI 3.1, read as 3.0. What lowers is imported with the first document that takes it."""

from __future__ import annotations

import re
from typing import Final

from specmux_converters.document import Document

_LATER: Final = re.compile(r"3\.0*[1-9][0-9]*(?:\..*)?", re.DOTALL)


def is_later_than_30(document: Document) -> bool:
    """3.1, which is lowered, or one that is refused then."""
    version = document.get("openapi")
    return isinstance(version, str) and _LATER.fullmatch(version) is not None
