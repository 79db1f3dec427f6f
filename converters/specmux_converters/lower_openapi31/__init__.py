"""OpenAPI 3.1, lowered to 3.0. The conversion is imported with the first such document."""

from __future__ import annotations

import re
from typing import Final

from specmux_converters.document import Document
from specmux_converters.lazy.patterns import pattern

_LATER: Final = pattern(r"3\.0*[1-9][0-9]*(?:\..*)?", re.DOTALL)


def is_later_than_30(document: Document) -> bool:
    """Whether the version is 3.1, which is lowered, or later, which is then rejected."""
    version = document.get("openapi")
    return isinstance(version, str) and _LATER.fullmatch(version) is not None
