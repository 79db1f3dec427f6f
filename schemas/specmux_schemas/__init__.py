"""Reading OpenAPI v3 documents of Kubernetes: kinds by group-version-kind, fields, resources. Pure.

It owns what documents mean to people and clients; it knows the converters, and nothing of files, sockets,
clocks or processes. Each name is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # type checkers and editors; at run time __getattr__ does it
    from specmux_schemas.differences.changes import Change
    from specmux_schemas.errors import SchemasError
    from specmux_schemas.queries import diff, explain, search, validate
    from specmux_schemas.search_index.query import SearchResult
    from specmux_schemas.validation.report import ValidationReport
    from specmux_schemas.validation.validator import Validator

__all__ = [
    "Change",
    "SchemasError",
    "SearchResult",
    "ValidationReport",
    "Validator",
    "diff",
    "explain",
    "search",
    "validate",
]

_MODULES: Final = {
    "Change": "differences.changes",
    "SchemasError": "errors",
    "SearchResult": "search_index.query",
    "ValidationReport": "validation.report",
    "Validator": "validation.validator",
    "diff": "queries",
    "explain": "queries",
    "search": "queries",
    "validate": "queries",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
