"""Swagger 2.0 to OpenAPI v3, and OpenAPI v3 documents as JSON, Protobuf and CBOR. Pure and synchronous.

    from specmux_converters import convert, parse

    conversion = convert(parse(swagger_bytes))
    conversion.documents["apis/apps/v1"]

What a name needs is imported when the name is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # type checkers and editors; at run time __getattr__ does it
    from specmux_converters.document import Document, Limits, parse
    from specmux_converters.errors import ConverterError
    from specmux_converters.losses import Loss
    from specmux_converters.merging.merge import merge
    from specmux_converters.parts import ConversionMemo
    from specmux_converters.swagger2.conversion import Conversion, convert

__all__ = [
    "Conversion",
    "ConversionMemo",
    "ConverterError",
    "Document",
    "Limits",
    "Loss",
    "convert",
    "merge",
    "parse",
]

_MODULES = {
    "Conversion": "swagger2.conversion",
    "ConversionMemo": "parts",
    "ConverterError": "errors",
    "Document": "document",
    "Limits": "document",
    "Loss": "losses",
    "convert": "swagger2.conversion",
    "merge": "merging.merge",
    "parse": "document",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
