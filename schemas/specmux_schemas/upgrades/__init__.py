"""Objects judged for an upgrade: under what serves them now, and under what will."""
