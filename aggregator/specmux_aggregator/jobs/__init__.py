"""What worker processes do: converting, building, encoding, checking documents, and the worker itself.

Its jobs are plain functions of bytes; it knows the model, HTTP values and the converters.
"""
