"""YAML in, under limits, and YAML out that Go's readers read alike.

It knows limits, errors and how Go reads a scalar; nothing of what the documents mean.
"""
