"""Present the fields of a kind: as a tree, as text, as kubectl prints them, as a skeleton to fill in.

Reads parsed documents, writes text or values. Depends on kinds, references and resources.
"""
