"""What a kind's fields are, for people: as a tree, as text, as kubectl prints them, as a skeleton to fill in.

Everything here reads parsed documents and writes text or values. It knows kinds, references and resources.
"""
