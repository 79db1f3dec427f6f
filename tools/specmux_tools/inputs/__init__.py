"""Sides and objects that commands compare and judge."""
