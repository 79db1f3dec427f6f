"""Judges objects for an upgrade: under the documents that serve them now, and under the target's."""
