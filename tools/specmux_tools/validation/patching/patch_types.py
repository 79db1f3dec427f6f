"""The media types of PATCH."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from specmux_converters.media_types import essence
from specmux_tools.validation.errors import UnsupportedMediaType


class PatchType(StrEnum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"
    APPLY_CBOR = "application/apply-patch+cbor"
    """The only CBOR type of patches in apiservers (KEP-4222)."""


APPLIES: Final = (PatchType.APPLY, PatchType.APPLY_CBOR)


def patch_type(media_type: str) -> PatchType:
    """Parameters are ignored. Raises UnsupportedMediaType."""
    name = essence(media_type)
    try:
        return PatchType(name)
    except ValueError:
        raise UnsupportedMediaType(f"{name or 'no media type'}: none of {', '.join(PatchType)}") from None
