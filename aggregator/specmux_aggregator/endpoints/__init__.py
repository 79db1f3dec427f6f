"""What can be asked for: documents, discovery, health, status; each a decision over the state of one moment.

It knows the rooms that hold that state; nothing of sockets.
"""
