"""Kinds of changes, and how much each means to whom."""
