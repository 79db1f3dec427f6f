"""Finding fields and kinds of all documents by words: an index in memory, and ranked rows.

It knows what ``explain`` calls a kind and a type, and the kinds of documents; no text but the words of both.
"""
