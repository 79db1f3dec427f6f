"""Kinds of changes, and their impacts."""
