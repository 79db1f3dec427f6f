"""Unions (KEP-1027): as the KEP has them since 2022 (``seed``), and as servers had them (``legacy``).

It knows values and declarations alone, and nothing of the rest of the package.
"""

from specmux_schemas.unions.declared import unions_of
from specmux_schemas.unions.legacy import UnionConflict, normalize_apply, normalize_update
from specmux_schemas.unions.model import Member, Union
from specmux_schemas.unions.seed import Fault, normalize, validate

__all__ = [
    "Fault",
    "Member",
    "Union",
    "UnionConflict",
    "normalize",
    "normalize_apply",
    "normalize_update",
    "unions_of",
    "validate",
]
