"""The page for people, as HTML text: frames in Jinja2, the tree of fields by a renderer of its own.

No I/O but the package's own templates and assets. It knows the trees of
``schemas.explain``, and no other room.
"""
