"""Whether documents keep to their standard, and to what their group-version promises.

``document`` says what is wrong with one, ``processes`` asks that of many at once, ``results`` keeps what was
found, ``reports`` tells it. It takes seconds for a megabyte: never on the way to a client. It
knows the converters and the model's keys; nothing of the service.
"""
