"""Discovery keys of group-versions, as ``/openapi/v3`` lists them."""

from __future__ import annotations

from typing import NewType

GroupVersion = NewType("GroupVersion", str)
"""A key of the discovery map: "api/v1", "apis/apps/v1", and what stands beside group-versions: "version"."""
