"""Who may ask: callers proven by token or certificate, and what each may have.

It knows the server's protocols, upstream for reviews, and HTTP values; nothing of what is served.
"""
