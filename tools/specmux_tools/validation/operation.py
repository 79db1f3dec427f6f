"""The operation that an apiserver is asked for with a body."""

from __future__ import annotations

from typing import Any

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind
from specmux_tools.validation.media_types import PatchType
from specmux_tools.validation.report import Directive


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
