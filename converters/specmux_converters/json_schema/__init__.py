"""Convert OpenAPI v3 documents to JSON Schemas (draft-07) of their kinds, for editors and CI.

Depends on documents, their group-versions and references; on no codec, and not on Swagger 2.0.
"""

from specmux_converters.json_schema.document import DocumentSchemas
from specmux_converters.json_schema.forms import EDITION, OPEN, STRICT, Schema, SchemaForm
from specmux_converters.json_schema.kinds import Kind

__all__ = ["EDITION", "OPEN", "STRICT", "DocumentSchemas", "Kind", "Schema", "SchemaForm"]
