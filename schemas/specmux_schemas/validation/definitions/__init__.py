"""CustomResourceDefinitions as objects: an apiserver's checks."""
