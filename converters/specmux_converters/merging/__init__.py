"""Several OpenAPI v3 documents as one, with the names of their components and operations made unlike.

It knows references, losses and documents; no codec, and nothing of Swagger 2.0.
"""
