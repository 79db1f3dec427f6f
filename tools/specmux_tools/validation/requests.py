"""A request: the media type of its body or patch, and the operation that an apiserver is asked for."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.media_types import essence
from specmux_converters.resources import GroupVersionKind
from specmux_tools.validation.errors import UnsupportedMediaType
from specmux_tools.validation.report import Directive


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


@dataclass(frozen=True, slots=True)
class Operation:
    """Create an object, replace ``old``, or patch it. The release is the validator's, which compiles kinds
    for it."""

    directive: Directive = Directive.STRICT
    old: Any = None
    """The object as it is stored; anything but an object is none."""
    kind: GroupVersionKind | None = None
    """The kind that the endpoint takes, if known; else the body's own counts."""
    patch: PatchType | None = None
    """The form of a body that is a patch. Only an apply needs no stored object."""

    @property
    def stored(self) -> dict[str, Any] | None:
        return self.old if isinstance(self.old, dict) else None
