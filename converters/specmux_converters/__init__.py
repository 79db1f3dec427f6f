"""Swagger 2.0 and CustomResourceDefinitions to OpenAPI v3; OpenAPI v3 documents as JSON, Protobuf and CBOR.

    from specmux_converters import convert

    conversion = convert(swagger_bytes)
    conversion.documents["apis/apps/v1"]

Pure and synchronous.
What a name needs is imported when the name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specmux_converters.lazy import lazy_names

if TYPE_CHECKING:  # type checkers and editors; at run time __getattr__ does it
    from specmux_converters.change_severity import ChangeSeverity
    from specmux_converters.codecs.object_envelope import Envelope as Envelope
    from specmux_converters.codecs.object_envelope import open_envelope as open_envelope
    from specmux_converters.crd import build
    from specmux_converters.crd.documents import CRDBuild
    from specmux_converters.crd.manifest import Problem
    from specmux_converters.document import Document, Limits, parse
    from specmux_converters.document import canonical as canonical
    from specmux_converters.document import content_hash as content_hash
    from specmux_converters.errors import ConverterError
    from specmux_converters.from_swagger2.conversion import (
        Conversion,
        WholeConversion,
        convert,
        convert_whole,
    )
    from specmux_converters.group_versions import GroupVersion as GroupVersion
    from specmux_converters.losses import Grade, Loss
    from specmux_converters.merging import ComponentRename, Conflict, MergeResult, merge
    from specmux_converters.outlines import DocumentPart, Outline
    from specmux_converters.resources import GroupVersionKind

__all__ = [
    "CRDBuild",
    "ChangeSeverity",
    "ComponentRename",
    "Conflict",
    "Conversion",
    "ConverterError",
    "Document",
    "DocumentPart",
    "Grade",
    "GroupVersionKind",
    "Limits",
    "Loss",
    "MergeResult",
    "Outline",
    "Problem",
    "WholeConversion",
    "build",
    "convert",
    "convert_whole",
    "merge",
    "parse",
]
"""The names that most users need; everything in ``_MODULES`` can be imported from here as well."""

_MODULES = {
    "resources": "GroupVersionKind",
    "change_severity": "ChangeSeverity",
    "crd.manifest": "Problem",
    "crd.documents": "CRDBuild",
    "outlines": "DocumentPart Outline",
    "from_swagger2.conversion": "Conversion WholeConversion convert convert_whole",
    "errors": "ConverterError",
    "document": "Document Limits canonical content_hash parse",
    "codecs.object_envelope": "Envelope open_envelope",
    "losses": "Grade Loss",
    "group_versions": "GroupVersion",
    "merging": "ComponentRename Conflict MergeResult merge",
    "crd": "build",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
