"""Unions (KEP-1027): as the KEP has them since 2022 (``seed``), and as servers had them (``legacy``).

It knows values and declarations alone, and nothing of the rest of the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from specmux_converters.unions import DeclaredUnions, Member, Union, UnionForm
from specmux_schemas.unions.reader import read_unions, union_text, unions_of

if TYPE_CHECKING:  # at run time __getattr__ imports them: explaining a kind takes the reader alone
    from specmux_schemas.unions.legacy import UnionConflict, normalize_apply, normalize_update
    from specmux_schemas.unions.seed import Fault, normalize, validate

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

_MODULES: Final = {
    "Fault": "seed",
    "UnionConflict": "legacy",
    "normalize": "seed",
    "normalize_apply": "legacy",
    "normalize_update": "legacy",
    "validate": "seed",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
