"""Requests that a backend answers, streamed through at the pace of the slower side.

It knows the Snapshot's owners, upstream and the server's protocols; no document.
"""
