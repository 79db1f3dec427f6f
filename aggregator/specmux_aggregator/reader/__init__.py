"""Reading documents for people: the one process that parses, indexes, explains and renders.

The service's event loop hands it bytes and passes on what it gives back. It is bounded in memory and time; it
is killed and started anew without harm, for everything in it can be had again. It knows the
schemas, the page and the forms of a worker's bytes; nothing of the Snapshot.
"""
