"""Parse YAML under limits, and write YAML that all readers, including Go's, read alike.

Depends on limits, errors and Go's scalars; knows nothing of a document's meaning.
"""
