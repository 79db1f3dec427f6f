"""Decode values as Go types."""
