"""Questions about documents: explain, search, pages, validation; the endpoints and the process that answers.

The service's event loop hands the process bytes and passes on what it gives back. It is bounded in memory and
time; it is killed and started anew without harm, for everything in it can be had again. It knows the schemas
and the forms of a worker's bytes; nothing of the Snapshot.
"""
