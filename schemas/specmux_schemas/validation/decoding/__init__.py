"""Bytes read into objects, as apiservers read them: JSON, YAML, CBOR; strict, typed, pruned, with places."""
