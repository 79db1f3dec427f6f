"""Swagger 2.0 to OpenAPI v3, and OpenAPI v3 documents as JSON, Protobuf and CBOR. Pure and synchronous."""

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
