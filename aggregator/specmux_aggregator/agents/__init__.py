"""Tools for agents: the documents of a source, asked in small questions with bounded answers."""
