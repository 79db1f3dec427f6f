"""Swagger 2.0 documents as the conversion reads them: parts, positions, losses, names."""
