"""Requests that a backend answers, streamed through."""
