"""RFC 9110 as values and decisions: messages, negotiation, content codings, prepared answers. Pure.

Depends on the model only: no event loop, no HTTP library, no higher package.
"""
