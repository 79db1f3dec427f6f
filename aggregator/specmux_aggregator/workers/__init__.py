"""The work of worker processes: convert, build, encode and check documents; and the worker itself.

Jobs are plain functions of bytes. Depends on the model, HTTP values and the converters.
"""
