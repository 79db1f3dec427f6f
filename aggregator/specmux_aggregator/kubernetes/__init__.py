"""A cluster as the source of backends and of CustomResourceDefinitions: access, watches, what is there.

It knows upstream, the configuration and the model; what becomes of the backends is told to it.
"""
