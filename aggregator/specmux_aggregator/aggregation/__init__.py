"""From observations of backends to the Snapshot: a loop per backend, who owns what, one publication.

It knows origins and documents; nothing of requests.
"""
