"""Convert OpenAPI v3 schemas to the schema of structured-merge-diff, used by server-side apply (KEP-2896).

Depends only on documents and losses.
"""

from specmux_converters.merge_types.conversion import to_merge_schema

__all__ = ["to_merge_schema"]
