"""Structural schemas: compiled once, applied to objects; formats, list types, ratcheting."""
