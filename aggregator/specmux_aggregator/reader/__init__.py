"""Questions about documents: explain, search, pages, validation; the endpoints, and the reader process that
answers.

The service's event loop sends bytes to the process and passes on its answers. The process is bounded in
memory and time, and can be killed and restarted without harm, since its state can be rebuilt. Depends on the
schemas and the byte formats of workers; knows nothing of the Snapshot.
"""
