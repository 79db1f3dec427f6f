"""Tools over OpenAPI v3 documents of Kubernetes: validate, explain, search and compare them; the commands.

    from specmux_tools import validate

``commands``, ``sources``, ``inputs`` and ``document_checks`` read files and servers; everything else is pure
(a contract in pyproject.toml). The service imports none of it into the process that serves clients. Names are
imported on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specmux_converters.lazy.names import lazy_names

if TYPE_CHECKING:  # type checkers and editors; at run time __getattr__ does it
    from specmux_tools.differences.changes import Change
    from specmux_tools.errors import SchemasError
    from specmux_tools.queries import diff, explain, search, validate
    from specmux_tools.search_index.query import SearchResult
    from specmux_tools.validation.report import ValidationReport
    from specmux_tools.validation.validator import Validator

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

_MODULES = {
    "differences.changes": "Change",
    "errors": "SchemasError",
    "search_index.query": "SearchResult",
    "validation.report": "ValidationReport",
    "validation.validator": "Validator",
    "queries": "diff explain search validate",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
