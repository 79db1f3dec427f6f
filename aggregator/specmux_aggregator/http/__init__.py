"""RFC 9110 as values and decisions: messages, negotiation, content codings, prepared answers. Pure.

It knows the model; no event loop, no HTTP library, no room above.
"""
