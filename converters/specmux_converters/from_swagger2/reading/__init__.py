"""Swagger 2.0 documents as input of the conversion: parts, positions, losses, names."""
