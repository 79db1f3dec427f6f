"""HTTP caching by RFC 9111, and a client's requests: header fields, freshness, transport.

Depends on the package's errors; knows nothing of the store or of OpenAPI.
"""

from typing import Final

HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Fields of the connection rather than the answer (RFC 9110 7.6.1, RFC 9111 3.1)."""
