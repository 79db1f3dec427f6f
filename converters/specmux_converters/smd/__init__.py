"""OpenAPI v3 schemas to the schema of structured-merge-diff, which server-side apply merges by (KEP-2896).

It knows documents and losses alone.
"""

from specmux_converters.smd.conversion import to_merge_schema

__all__ = ["to_merge_schema"]
