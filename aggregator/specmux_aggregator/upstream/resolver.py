"""Name resolution in which backends do not wait for each other.

asyncio runs getaddrinfo in the loop's pool of few threads, shared with files and pages: a handful of backends
with a silent name server would fill it. A daemon thread per lookup delays neither others nor the end of the
process.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from aiohttp.abc import AbstractResolver, ResolveResult

T = TypeVar("T")


class DaemonResolver(AbstractResolver):
    """Uses the system's resolver. A cancelled lookup continues in its thread until it gives up."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Raises OSError (socket.gaierror) or UnicodeError for a name without an address."""
        look_up = partial(
            socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        found = await _in_daemon_thread(look_up, name=f"resolve {host}")
        return [_result(host, *info) for info in found]

    async def close(self) -> None:
        """Nothing to release."""


def _result(
    hostname: str, family: int, _kind: int, proto: int, _canonical: str, address: tuple[Any, ...]
) -> ResolveResult:
    host, port, *scope = address
    if len(scope) == 2 and scope[1]:
        host = f"{host}%{scope[1]}"  # a link-local address needs its interface (RFC 4007 11)
    return ResolveResult(
        hostname=hostname,
        host=host,
        port=port,
        family=family,
        proto=proto,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )


async def _in_daemon_thread(work: Callable[[], T], *, name: str) -> T:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type] # a T, since there was no error

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except (OSError, UnicodeError) as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, result, failure)

    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, str(error)) from error
    return await done
