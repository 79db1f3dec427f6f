"""The command line, a module per command, imported when it is called.

It may know every room; none but ``cli`` knows it.
"""
