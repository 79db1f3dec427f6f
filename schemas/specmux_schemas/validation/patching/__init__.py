"""Patches of stored objects: the four media types of PATCH, applied as an apiserver applies them."""
