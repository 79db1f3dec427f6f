"""Tools over OpenAPI v3 documents of Kubernetes: validate, explain, search and compare them; the commands.

    from specmux_tools import validate

``commands``, ``sources``, ``inputs`` and ``document_checks`` read files and servers; everything else is pure
(a contract in pyproject.toml). The service imports none of it into the process that serves clients. Names are
imported on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specmux_converters.lazy import lazy_names

if TYPE_CHECKING:  # type checkers and editors; at run time __getattr__ does it
    from specmux_tools.differences.changes import Change, Location
    from specmux_tools.differences.rules import Impact, Impacts
    from specmux_tools.errors import SchemasError
    from specmux_tools.explanation.kind_names import KindName
    from specmux_tools.kinds import DocumentSet
    from specmux_tools.queries import diff, explain, search, validate
    from specmux_tools.reports.finding import Where
    from specmux_tools.search_index.query import SchemaHit, SearchResult
    from specmux_tools.sources.open_source import load
    from specmux_tools.validation.report import Check, Directive, Severity, ValidationReport, Violation
    from specmux_tools.validation.validator import Validator

__all__ = [
    "Change",
    "Check",
    "Directive",
    "DocumentSet",
    "Impact",
    "Impacts",
    "KindName",
    "Location",
    "SchemaHit",
    "SchemasError",
    "SearchResult",
    "Severity",
    "ValidationReport",
    "Validator",
    "Violation",
    "Where",
    "diff",
    "explain",
    "load",
    "search",
    "validate",
]

_MODULES = {
    "sources.open_source": "load",
    "kinds": "DocumentSet",
    "reports.finding": "Where",
    "differences.rules": "Impact Impacts",
    "explanation.kind_names": "KindName",
    "differences.changes": "Change Location",
    "errors": "SchemasError",
    "search_index.query": "SchemaHit SearchResult",
    "validation.report": "Check Directive Severity ValidationReport Violation",
    "validation.validator": "Validator",
    "queries": "diff explain search validate",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
