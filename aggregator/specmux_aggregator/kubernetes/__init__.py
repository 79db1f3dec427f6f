"""A cluster as the source of backends and of CustomResourceDefinitions."""
