"""Unions (KEP-1027) that schemas declare: their types, and the one reader of ``x-kubernetes-unions`` and
``oneOf``. Depends on values only; violations of a union are found by ``specmux_tools.unions``."""

from specmux_converters.unions.declared import DeclaredUnions, allowed_values, declared_unions
from specmux_converters.unions.model import Member, Object, Union, UnionForm, without

__all__ = [
    "DeclaredUnions",
    "Member",
    "Object",
    "Union",
    "UnionForm",
    "allowed_values",
    "declared_unions",
    "without",
]
