"""Find fields and kinds of all documents by words: an index in memory, and ranked rows.

Depends on the names of kinds and types in ``explanation``, and on the kinds of documents.
"""
