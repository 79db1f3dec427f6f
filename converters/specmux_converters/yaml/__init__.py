"""YAML in, under limits, and YAML out that Go's readers read alike.

It knows limits and errors; nothing of what the documents mean.
"""
