"""Reads of documents: what to ask, what is kept, what is fresh; the rules once, with a loop and without."""
