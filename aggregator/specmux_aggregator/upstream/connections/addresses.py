"""Addresses of servers: concurrent lookups are shared, and results cached briefly.

asyncio runs getaddrinfo in the loop's pool of few threads, shared with files and pages: a handful of backends
with a silent name server would fill it. A daemon thread per lookup delays neither others nor the end of the
process.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import re
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

T = TypeVar("T")

Address = tuple[socket.AddressFamily, tuple[str, int] | tuple[str, int, int, int]]

_NUMERIC: Final = re.compile(r"[0-9.]+|0[xX][0-9a-fA-F.xX]*")
"""Hosts that the system reads as an IPv4 address in another notation: 2130706433, 127.1, 0x7f.1."""


class Addresses:
    """The addresses of the hosts of one connector. Lives on one event loop."""

    def __init__(self, resolver: AbstractResolver, *, kept: float, only: Address | None = None) -> None:
        """``kept``: seconds for which results are cached. ``only``: replaces every host's addresses."""
        self._only = only
        self._resolver = resolver
        self._kept = kept
        self._known: dict[tuple[str, int], tuple[float, list[Address]]] = {}
        """With the monotonic seconds until which the result is valid."""
        self._asking: dict[tuple[str, int], asyncio.Task[list[Address]]] = {}

    async def of(self, host: str, port: int) -> list[Address]:
        """In the order to try, which rotates with each call. Raises OSError and aiohttp.InvalidURL."""
        literal = self._only or _literal(host, port)
        if literal is not None:
            return [literal]
        key = (host, port)
        good_until, found = self._known.get(key, (0.0, []))
        if good_until <= time.monotonic():
            asking = self._asking.get(key)
            if asking is None:
                asking = self._asking[key] = asyncio.create_task(self._look_up(host, port))
                asking.add_done_callback(lambda ended: self._answer(key, ended))
            found = await asyncio.shield(asking)  # cancelling one caller must not affect the others
        in_turn = list(found)
        found.append(found.pop(0))
        return in_turn

    def close(self) -> None:
        for asking in self._asking.values():
            asking.cancel()

    async def _look_up(self, host: str, port: int) -> list[Address]:
        found = await self._resolver.resolve(host, port, family=socket.AF_UNSPEC)
        addresses = [address_of(each["host"], each["port"]) for each in found]
        if not addresses:
            raise OSError(f"no address of {host}")
        return addresses

    def _answer(self, key: tuple[str, int], ended: asyncio.Task[list[Address]]) -> None:
        del self._asking[key]
        if not ended.cancelled() and ended.exception() is None:
            self._known[key] = (time.monotonic() + self._kept, ended.result())


def address_of(host: str, port: int) -> Address:
    return (socket.AF_INET6, (host, port, 0, 0)) if ":" in host else (socket.AF_INET, (host, port))


def is_literal(host: str) -> bool:
    """Whether a host is an address rather than a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _literal(host: str, port: int) -> Address | None:
    if not is_literal(host):
        if _NUMERIC.fullmatch(host):
            raise aiohttp.InvalidURL(host, "is no IPv4 address in its usual form")
        return None
    return address_of(host, port)


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
