"""Check names and metadata of objects, with an apiserver's texts."""
