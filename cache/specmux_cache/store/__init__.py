"""The bounded, compactable store: index, bodies as files, locks, compaction, checking; its twin in memory.

It knows the package's errors and events, and nothing of HTTP.
"""
