"""The bounded, compactable store: index, body files, locks, compaction, verification; and its equivalent in
memory.

Depends on the package's errors and events; knows nothing of HTTP.
"""
