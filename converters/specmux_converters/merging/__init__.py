"""Merge several OpenAPI v3 documents to one, making names of components and operations unique.

Depends on references, losses and documents; on no codec, and not on Swagger 2.0.
"""
