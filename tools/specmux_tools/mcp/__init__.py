"""Tools for agents: the documents of a source, asked in small questions with bounded answers.

It knows the sources and the schemas; the command ``mcp`` serves it.
"""
