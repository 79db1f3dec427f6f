"""The service: one OpenAPI v3 discovery in front of many apiservers."""
