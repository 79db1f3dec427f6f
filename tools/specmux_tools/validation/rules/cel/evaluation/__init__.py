"""Checked expressions as closures, and their evaluation."""
