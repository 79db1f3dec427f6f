"""Decode bodies as apiservers do: JSON, YAML, CBOR; strict, typed, pruned, with places."""
