"""Releases of Kubernetes, parsed from versions."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

Release: TypeAlias = tuple[int, int]
"""Major and minor version."""


def release_in(version: Any) -> Release | None:
    """Major and minor of a version ("1.34", "v1.34.4-eks-1"); None if it contains none."""
    match = re.match(r"v?(\d{1,3})\.(\d{1,3})(?!\d)", version) if isinstance(version, str) else None
    return None if match is None else (int(match[1]), int(match[2]))
