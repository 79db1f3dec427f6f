"""The bounded, compactable store: an index, bodies as files, locks, compaction, checking; and its twin in memory.

It knows the package's errors and events, and nothing of HTTP.
"""
