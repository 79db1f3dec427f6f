"""Schemas of Swagger 2.0, and what their keywords, formats and defaults become."""
