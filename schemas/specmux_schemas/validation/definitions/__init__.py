"""CustomResourceDefinitions as objects: what an apiserver refuses of them."""
