"""JSON Schemas of published kinds, served as files: ``/schemas`` and below."""
