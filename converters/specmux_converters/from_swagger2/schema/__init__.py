"""Schemas of Swagger 2.0, and the conversion of their keywords, formats and defaults."""
