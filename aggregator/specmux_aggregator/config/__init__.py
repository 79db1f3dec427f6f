"""The settings and their sources: file, environment, flags, and the watch for changes of the file.

It knows the model and the values of HTTP.
"""
