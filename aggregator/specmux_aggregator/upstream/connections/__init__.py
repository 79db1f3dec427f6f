"""Connections to servers: opened, read, kept and closed."""
