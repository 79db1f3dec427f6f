"""Swagger 2.0 to OpenAPI v3, and OpenAPI v3 documents as JSON, Protobuf and CBOR. Pure and synchronous."""

from specmux_converters.conversion import Conversion, convert
from specmux_converters.document import Document, Limits, parse
from specmux_converters.errors import ConverterError
from specmux_converters.losses import Loss
from specmux_converters.merge import merge
from specmux_converters.parts import ConversionMemo

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
