"""A bounded, compactable, crash-safe disk cache for clients of ``/openapi/v3``."""
