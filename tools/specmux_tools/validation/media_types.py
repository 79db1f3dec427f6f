"""The media types of a body, and of a PATCH."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from specmux_converters.media_types import essence
from specmux_tools.validation.errors import UnsupportedMediaType


class BodyFormat(StrEnum):
    JSON = "json"
    YAML = "yaml"
    CBOR = "cbor"
    PROTOBUF = "vnd.kubernetes.protobuf"
    """Recognized in order to report that it is not validated (KEP-2885)."""


READ: Final = (BodyFormat.JSON, BodyFormat.YAML, BodyFormat.CBOR)

_FORMATS: Final = {
    "application/json": BodyFormat.JSON,
    "application/yaml": BodyFormat.YAML,
    "application/x-yaml": BodyFormat.YAML,
    "text/yaml": BodyFormat.YAML,
    "application/cbor": BodyFormat.CBOR,
    "application/vnd.kubernetes.protobuf": BodyFormat.PROTOBUF,
}


def body_format(media_type: str) -> BodyFormat:
    """Parameters are ignored. Raises UnsupportedMediaType."""
    name = essence(media_type)
    found = _FORMATS.get(name)
    if found is None:
        raise UnsupportedMediaType(
            f"{name or 'no media type'}: none of {', '.join(f'application/{form}' for form in READ)}"
        )
    return found


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
