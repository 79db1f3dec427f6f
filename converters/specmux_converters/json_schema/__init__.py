"""Convert OpenAPI v3 documents to JSON Schemas (draft-07) of their kinds, for editors and CI.

Depends on documents, their group-versions and references; on no codec, and not on Swagger 2.0. Names are
imported on demand: who offers files by name needs no converter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specmux_converters.lazy import lazy_names

if TYPE_CHECKING:  # at run time __getattr__ imports them
    from specmux_converters.json_schema.document import DocumentSchemas
    from specmux_converters.json_schema.forms import EDITION, OPEN, STRICT, Schema, SchemaForm
    from specmux_converters.json_schema.kinds import Kind

__all__ = ["EDITION", "OPEN", "STRICT", "DocumentSchemas", "Kind", "Schema", "SchemaForm"]

_MODULES = {
    "document": "DocumentSchemas",
    "forms": "EDITION OPEN STRICT Schema SchemaForm",
    "kinds": "Kind",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
