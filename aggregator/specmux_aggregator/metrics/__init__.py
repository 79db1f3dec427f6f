"""Every instrument and collector of /metrics, under the names that docs/metrics.md lists.

It reads what other rooms hold; none of them but authentication and the endpoints knows it.
"""
