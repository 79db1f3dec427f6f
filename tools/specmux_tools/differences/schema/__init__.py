"""Compares two schemas, keyword by keyword."""
