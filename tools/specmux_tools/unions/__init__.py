"""Unions (KEP-1027): as the KEP defines them since 2022 (``seed``), and as servers implemented them before
(``legacy``).

Depends on values and declarations only, not on the rest of the package.
"""

from specmux_converters.unions import DeclaredUnions, Member, Union, UnionForm
from specmux_tools.unions.seed import (
    Fault,
    UnionConflict,
    normalize,
    normalize_apply,
    normalize_update,
    read_unions,
    union_text,
    unions_of,
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
