"""Every instrument and collector of /metrics, under the names listed in docs/metrics.md.

It reads the state of other packages; only authentication and the endpoints depend on it.
"""
