"""OpenAPI 3.1, read as 3.0."""
