"""Judge an object as an apiserver would, before it is sent: KEP-2885, schemas, metadata.

Depends on kinds, references, unions, and the structure of custom resources in ``converters.crd``.
"""

from specmux_tools.validation.errors import InvalidDirective, UnsupportedMediaType, ValidationError
from specmux_tools.validation.report import (
    Check,
    Directive,
    Severity,
    UnionAlgorithm,
    ValidationReport,
    Violation,
)
from specmux_tools.validation.validator import Validator

__all__ = [
    "Check",
    "Directive",
    "InvalidDirective",
    "Severity",
    "UnionAlgorithm",
    "UnsupportedMediaType",
    "ValidationError",
    "ValidationReport",
    "Validator",
    "Violation",
]
