"""Requests that a backend answers, streamed at the pace of the slower side.

Depends on the Snapshot's owners, upstream and the server's protocols; knows no document.
"""
