"""Answers as bytes: status line and header fields built once, time lines built once per second.

A ``PreparedAnswer`` never changes. The lines that depend on time, Date and Expires, are inserted by the
writer between the head and the empty line, so one value serves every request and connection.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from email.utils import formatdate
from http import HTTPStatus

import orjson

YEAR = 31_536_000  # seconds: max-age of an immutable answer, and the distance of its Expires
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")
"""RFC 9110 5.5: no CR, LF, NUL or other control character except the tab."""
RESERVED = frozenset({"content-length", "date", "expires", "connection", "transfer-encoding"})
"""Fields that only the server writes."""
NO_CONTENT = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


@dataclass(frozen=True, slots=True, eq=False)
class PreparedAnswer:
    """A complete answer except for its time lines (Date, and Expires if ``is_immutable``)."""

    status: int
    head: bytes
    """Status line and header fields, each ended by CRLF; without Date, Expires, Connection and the empty
    line."""
    body: bytes
    """Empty for HEAD, 304 and every other answer without content."""
    is_immutable: bool = False
    route: str = "other"
    """Metric label: openapi_root, openapi_document, schemas, health, metrics, status, other."""
    format: str = "none"
    """Metric label: json, protobuf, cbor, text, none."""
    is_stale: bool = False
    """Whether its backend is failing; counted, not shown to the client."""
    good_until: float | None = None
    """Monotonic seconds until which an equal request gets the same answer in this snapshot; None: no end."""


def prepare(
    status: int,
    headers: Iterable[tuple[str, str]],
    body: bytes = b"",
    *,
    content_length: int | None = None,
    is_head: bool = False,
    is_immutable: bool = False,
    route: str = "other",
    format: str = "none",
) -> PreparedAnswer:
    """An answer that is complete except for its time lines.

    Content-Length is that of ``body`` unless ``content_length`` is given, which only HEAD may use (RFC 9110
    9.3.2); 204 and 304 have no Content-Length and no body. Raises ValueError for a reserved field, and for
    what could break the framing: a name that is not a token, a control character or one beyond Latin-1 in a
    value.
    """
    if content_length is not None and not is_head:
        raise ValueError("only the answer to HEAD has a length that is not its body's")
    if status in NO_CONTENT and body:
        raise ValueError(f"{status} has no content")
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines.extend(_field(name, value) for name, value in headers)
    if status not in NO_CONTENT:
        lines.append(f"Content-Length: {len(body) if content_length is None else content_length}")
    lines.append("")
    return PreparedAnswer(
        status=status,
        head="\r\n".join(lines).encode("latin-1"),
        body=b"" if is_head else body,
        is_immutable=is_immutable,
        route=route,
        format=format,
    )


def with_field(prepared: PreparedAnswer, name: str, value: str, *, good_until: float) -> PreparedAnswer:
    """The answer with one more header field, valid until ``good_until``. Raises ValueError as ``prepare``."""
    head = prepared.head + f"{_field(name, value)}\r\n".encode("latin-1")
    return replace(prepared, head=head, good_until=good_until)


def _field(name: str, value: str) -> str:
    if not TOKEN.match(name):
        raise ValueError(f"not a field name: {name[:64]!r}")
    if name.lower() in RESERVED:
        raise ValueError(f"{name} is written by the server")
    if not VALUE.match(value):
        raise ValueError(f"not a value for {name}: {value[:64]!r}")
    return f"{name}: {value}"


def refusal(
    status: int,
    reason: str,
    message: str,
    *,
    fields: Iterable[tuple[str, str]] = (),
    is_head: bool = False,
    route: str = "other",
) -> PreparedAnswer:
    """An error as Kubernetes reports it: a ``Status`` (metav1.Status), always JSON, never stored."""
    body = orjson.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": status,
        }
    )
    headers = [("Content-Type", "application/json"), ("Cache-Control", "no-store"), *fields]
    return prepare(status, headers, body, is_head=is_head, route=route, format="json")


class TimeLines:
    """The Date line, and Date with Expires, built once per second. Both end with the empty line."""

    __slots__ = ("_clock", "_dated", "_expiring", "_until")

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._until = -math.inf
        self._dated = self._expiring = b""

    def end_of_head(self, prepared: PreparedAnswer, now: float) -> bytes:
        """The time lines and the empty line that follow ``prepared.head``. ``now``: monotonic seconds.

        The wall clock is read once per second, so a change of the clock is noticed within a second.
        """
        if now >= self._until:
            self._renew(now)
        return self._expiring if prepared.is_immutable else self._dated

    def _renew(self, now: float) -> None:
        wall = self._clock()
        second = math.floor(wall)
        date = f"Date: {formatdate(second, usegmt=True)}\r\n"
        expires = f"Expires: {formatdate(second + YEAR, usegmt=True)}\r\n"
        self._dated = f"{date}\r\n".encode()
        self._expiring = f"{date}{expires}\r\n".encode()
        self._until = now + (second + 1 - wall)
