"""Unions (KEP-1027): as the KEP defines them since 2022 (``seed``), and as servers implemented them before
(``legacy``).

Depends on values and declarations only, not on the rest of the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specmux_converters.lazy import lazy_names
from specmux_converters.unions import DeclaredUnions, Member, Union, UnionForm
from specmux_tools.unions.seed import read_unions, union_text, unions_of

if TYPE_CHECKING:  # imported by __getattr__ on demand: explaining a kind needs the reader alone
    from specmux_tools.unions.seed import (
        Fault,
        UnionConflict,
        normalize,
        normalize_apply,
        normalize_update,
        validate,
    )

__all__ = [
    "DeclaredUnions",
    "Fault",
    "Member",
    "Union",
    "UnionConflict",
    "UnionForm",
    "normalize",
    "normalize_apply",
    "normalize_update",
    "read_unions",
    "union_text",
    "unions_of",
    "validate",
]

_MODULES = {
    "seed": "Fault UnionConflict normalize normalize_apply normalize_update validate",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
