"""Finding fields and kinds of all documents by words: an index in memory, and ranked rows."""
