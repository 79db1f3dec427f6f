"""A cluster as the source of backends and CustomResourceDefinitions: access, watches, and their contents.

Depends on upstream, the configuration and the model; callers decide what happens to the backends.
"""
