"""Patches of stored objects: the media types of PATCH, applied as by an apiserver."""
