"""Jobs of the reader processes: explain, search and validation, over documents that they keep parsed."""
