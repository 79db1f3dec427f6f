"""The settings and their sources: file, environment and flags; and the watch for changes of the file.

Depends on the model and HTTP values.
"""
