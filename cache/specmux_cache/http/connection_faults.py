"""Reasons that a server could not be reached, in fixed texts and the system's.

An exception's own message may quote the server. Independent of HTTP libraries: wrapped system errors are
unwrapped.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

CHAIN_MAX: Final = 8
"""Longest chain of exceptions examined."""


def reason_of(error: BaseException) -> str:
    """A few words, without the URL."""
    import ssl  # imported only after a failure

    chain = list(_chain(error))
    for each in chain:
        message = getattr(each, "verify_message", None)  # aiohttp's own is of this class, without a message
        if isinstance(each, ssl.SSLCertVerificationError) and message:
            return f"its certificate was refused: {message}"
    for each in chain:
        match each:
            case socket.gaierror():
                return "the host name does not resolve"
            case ssl.SSLError():
                told = (getattr(inner, "reason", None) for inner in chain)  # a wrapper has none
                words = next(filter(None, told), "").replace("_", " ").lower()
                return f"no TLS connection: {words}" if words else "no TLS connection"
            case OSError() if each.errno is not None and each.errno > 0:
                return os.strerror(each.errno).lower()
    return "it cannot be asked"


def by_proxy(proxy: str | None, reason: str) -> str:
    """The reason, with the proxy that the connection went through, if any. Its credentials are left out."""
    if proxy is None:
        return reason
    parts = urlsplit(proxy)
    return f"by the proxy {parts.scheme}://{parts.netloc.rpartition('@')[2]}: {reason}"


def proxy_step(reason: str) -> str | None:
    """Advice for a connection that failed through a proxy; None for others."""
    if not reason.startswith("by the proxy "):
        return None
    return "is it running? HTTPS_PROXY, HTTP_PROXY or the kubeconfig names it, NO_PROXY avoids it"


def tls_step(reason: str) -> str | None:
    """Advice for a TLS connection that failed for this reason; None for other reasons."""
    if "certificate was refused" in reason:
        if "mismatch" in reason:
            return "the certificate is of another name: use that name, or give it with --tls-server-name"
        if "expired" in reason or "not yet valid" in reason:
            return "the server needs a new certificate, or this machine's clock is wrong"
        return "give the server's CA with --ca-file"
    if "TLS" not in reason:
        return None
    if any(words in reason for words in ("certificate required", "bad certificate", "handshake failure")):
        return "the server wants a client certificate: --client-certificate and --client-key"
    return "if the server does not speak TLS, its URL begins with http://"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(CHAIN_MAX):
        if error is None:
            return
        yield error
        for name in ("certificate_error", "os_error"):  # attributes of aiohttp's errors
            inner = getattr(error, name, None)
            if isinstance(inner, BaseException):
                yield inner
        error = error.__cause__
