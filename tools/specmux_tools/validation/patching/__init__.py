"""PATCH of stored objects: applies each media type as an apiserver does."""
