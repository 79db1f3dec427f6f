"""Reading OpenAPI v3 documents of Kubernetes: kinds by group-version-kind, fields, resources. Pure.

It owns what documents mean to people and clients; it knows the converters, and nothing of files, sockets,
clocks or processes.
"""
