"""What commands share: options of all of them, the list of commands, and how they print.

It knows sources of documents and the rooms below them; ``commands`` and ``cli`` know it.
"""
