"""Turn exceptions of aiohttp, asyncio and ssl into Failures: what each means to an operator.

Details are fixed texts and the system's, never the backend's: an answer can repeat a credential.
"""

from __future__ import annotations

import errno
import os
import ssl
from typing import Final

import aiohttp

from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.model.failure import Cause, Failure

TRANSPORT_ERRORS: Final = (aiohttp.ClientError, OSError, ValueError)
"""Every exception of a request except CancelledError. TimeoutError and ssl.SSLError are OSErrors; yarl and
the idna codec raise ValueError for an invalid host."""

_BY_ERRNO: Final = {
    errno.ECONNREFUSED: Cause.REFUSED,
    errno.EHOSTUNREACH: Cause.REFUSED,
    errno.ENETUNREACH: Cause.REFUSED,
    errno.EADDRNOTAVAIL: Cause.REFUSED,
    errno.ECONNRESET: Cause.RESET,
    errno.ECONNABORTED: Cause.RESET,
    errno.EPIPE: Cause.RESET,
    errno.ETIMEDOUT: Cause.TIMEOUT,
}


def failure_of(error: Exception, polling: PollingSettings) -> Failure:
    """The failure of a request. ``polling`` supplies the limits for the text."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return Failure(Cause.TIMEOUT, f"no connection within {polling.connect_timeout:g} s")
        case aiohttp.SocketTimeoutError():
            return Failure(Cause.TIMEOUT, f"silent for {polling.idle_timeout:g} s")
        case TimeoutError() if error.errno is None:
            return Failure(Cause.TIMEOUT, f"no whole answer within {polling.total_timeout:g} s")
        case aiohttp.ClientConnectorCertificateError(args=(_, certificate_error)):
            return Failure(Cause.BAD_TLS, _certificate_fault(certificate_error))
        case aiohttp.ClientConnectorDNSError():
            return Failure(Cause.UNRESOLVED, "the host name does not resolve")
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return Failure(Cause.BAD_TLS, _tls_fault(error))
        case aiohttp.ServerDisconnectedError():
            return Failure(Cause.RESET, "closed the connection before it answered")
        case aiohttp.ClientHttpProxyError(status=status):
            cause = Cause.CREDENTIALS if status == 407 else Cause.REFUSED
            return Failure(cause, f"the proxy answered {status}")
        case aiohttp.ClientPayloadError(__cause__=ConnectionError() as broken):
            return _system_failure(broken)
        case aiohttp.ClientPayloadError():
            return Failure(Cause.TRUNCATED, "the body stops before its end")
        case aiohttp.ClientResponseError():
            return Failure(Cause.BAD_BODY, "the answer is not HTTP")
        case aiohttp.ClientProxyConnectionError():
            failure = _system_failure(error)
            return Failure(failure.cause, f"no connection to the proxy: {failure.detail}")
        case OSError():
            return _system_failure(error)
        case aiohttp.ClientConnectionError():
            return Failure(Cause.RESET, "the connection was closed")
        case _:
            return Failure(Cause.UNRESOLVED, "the URL cannot be asked for")


def _system_failure(error: OSError) -> Failure:
    if error.errno is None:
        return Failure(Cause.RESET, "the connection broke")
    # Several addresses of one host can fail in different ways; aiohappyeyeballs reports one of them.
    cause = _BY_ERRNO.get(error.errno, Cause.RESET)
    return Failure(cause, os.strerror(error.errno).lower())


def _certificate_fault(error: Exception) -> str:
    message = getattr(error, "verify_message", "") or "it cannot be verified"
    return f"its certificate was refused: {message}"


def _tls_fault(error: Exception) -> str:
    reason = getattr(error, "reason", None) or getattr(getattr(error, "os_error", None), "reason", None)
    words = f": {reason.replace('_', ' ').lower()}" if isinstance(reason, str) else ""
    return f"no TLS connection{words}"
