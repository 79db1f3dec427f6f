"""Deprecation: by the flag, or by a sentence that begins with the word.

Kubernetes has no flag for fields; its descriptions say "Deprecated: …", at the start or further on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_tools.differences.findings import Finding

_SENTENCE: Final = re.compile(r"(?:\A|[.!?]\s|\n)[\s*_]*deprecated\b", re.IGNORECASE)


def is_deprecated(holder: Mapping[str, Any]) -> bool:
    """Applies to an operation, a schema or a version of a CustomResourceDefinition."""
    if holder.get("deprecated") is True:
        return True
    description = holder.get("description")
    return isinstance(description, str) and _SENTENCE.search(description) is not None


def deprecation_changes(
    old: Mapping[str, Any], new: Mapping[str, Any], *, what: str | None = None
) -> Iterator[Finding]:
    before, after = is_deprecated(old), is_deprecated(new)
    if before != after:
        yield Finding("deprecated" if after else "undeprecated", "", what=what)
