"""Answers as bytes, and the conditional GET of every endpoint: validators and caching rules (RFC 9110 13, RFC
9111). Pure.

An endpoint creates a ``Representation``, asks ``evaluate_preconditions`` for an answer without bytes, and
only then fetches the bytes for ``deliver``. A ``PreparedAnswer`` never changes: its status line and header
fields are built once, and the writer inserts the lines that depend on time (Date, Expires), so one value
serves every request and connection.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from email.utils import formatdate
from enum import StrEnum
from http import HTTPStatus
from typing import Final

import orjson

from specmux_aggregator.http.messages import REASONS, Coding, ETag, Request
from specmux_aggregator.http.negotiation import coding_for
from specmux_aggregator.version import VERSION
from specmux_converters.media_types import FORMS, JSON, JSON_COMPONENTS, JSON_SCHEMAS, PROTOBUF_V2

YEAR = 31_536_000  # seconds: max-age of an immutable answer, and the distance of its Expires
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")
"""RFC 9110 5.5: no CR, LF, NUL or other control character except the tab."""
RESERVED = frozenset({"content-length", "date", "expires", "connection", "transfer-encoding"})
"""Fields that only the server writes."""
NO_CONTENT = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})

FORMATS: Final = {
    **{media_type: form.name for media_type, form in FORMS.items()},
    PROTOBUF_V2: "protobuf",
    JSON_SCHEMAS: "schemas",
    JSON_COMPONENTS: "components",
}
"""Metric labels, and what an ETag says of a form."""

VARY: Final = ("Vary", "Accept, Accept-Encoding")
VARY_BY_DICTIONARY: Final = ("Vary", "Accept, Accept-Encoding, Available-Dictionary")
NO_STORE: Final = ("Cache-Control", "no-store")
ALLOW: Final = ("Allow", "GET, HEAD")

OK: Final = "HTTP/1.1 200 OK"

RENDERER: Final = f"{VERSION}-4"
"""Part of each ETag that ``represent`` makes: what renders anew has another. The number rises with what is
rendered."""


class CacheStatus(StrEnum):
    """Where an answer comes from, as Cache-Status says it (RFC 9211)."""

    HIT = "specmux; hit"
    STALE = "specmux; hit; detail=stale"
    """Its backend is failing."""
    ASKED = "specmux; fwd=miss"
    """The backend was asked because of the request."""


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
    lines = [OK if status == 200 else f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines.extend([_FREQUENT.get(field) or _field(*field) for field in headers])
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


def cache_control(*, is_immutable: bool, is_private: bool) -> tuple[str, str]:
    """Cache-Control. With authentication on, only the receiving client may store the answer: a shared cache
    would give it to others (RFC 9111 3.5 lets "public" override Authorization)."""
    if is_immutable:
        return "Cache-Control", f"{'private' if is_private else 'public'}, max-age=31536000, immutable"
    return "Cache-Control", "private, no-cache" if is_private else "no-cache"


_FREQUENT: Final = {
    field: _field(*field)
    for field in (
        VARY,
        ("Content-Type", JSON),
        VARY_BY_DICTIONARY,
        *(("Cache-Status", status.value) for status in CacheStatus),
        *(cache_control(is_immutable=a, is_private=b) for a in (False, True) for b in (False, True)),
    )
}
"""Lines that most answers have: checking them again would cost more than the decision about the answer."""


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

    def __init__(self, clock: Callable[[], float] = lambda: time.time()) -> None:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Representation:
    """The fields of an answer that describe one representation."""

    content_type: str
    etag: ETag
    """Strong: equal tags promise equal bytes, content coding included."""
    route: str
    """Metric label."""
    format: str
    """Metric label."""
    coding: Coding = Coding.IDENTITY
    is_immutable: bool = False
    """Whether the URL names exactly this content, forever."""
    is_private: bool = False
    """Whether access is restricted, so no shared cache may store it."""
    is_head: bool = False
    is_stale: bool = False
    """Whether its backend is failing; counted, not shown to the client."""
    cache_status: CacheStatus | None = None
    fields: tuple[tuple[str, str], ...] = ()
    """Additional header fields of the 200 and the 304."""
    use_as_dictionary: str = ""
    """Use-As-Dictionary of the 200 (RFC 9842 2.1)."""
    varies_by_dictionary: bool = False
    """Whether the answer depends on the dictionary that the client has."""
    content_coding: str = ""
    """Content-Encoding, if it is not ``coding``."""

    @property
    def expires(self) -> bool:
        """Whether to send Expires with the value of max-age: caches of HTTP/1.0 understand it, but not
        ``private``."""
        return self.is_immutable and not self.is_private


def evaluate_preconditions(representation: Representation, request: Request) -> PreparedAnswer | None:
    """The answer that needs no bytes, 412 or 304, in the order of RFC 9110 13.2.2; None: use
    ``deliver``."""
    etag, route = representation.etag, representation.route
    if request.if_match is not None and not names(request.if_match, etag, weak=False):
        return status_reply(412, "If-Match names another representation", route=route, request=request)
    if request.if_none_match is None or not names(request.if_none_match, etag, weak=True):
        return None
    # No Content-* fields: RFC 9110 15.4.5, and client-go's cache would merge them into its entry.
    fields = [*_validator_fields(representation, representation.cache_status), *representation.fields]
    return _prepare(representation, 304, fields)


def deliver(
    representation: Representation, body: bytes, cache_status: CacheStatus | None = None
) -> PreparedAnswer:
    """The 200 with ``body``, which has the representation's content coding. ``cache_status``: if it differs
    from the representation's."""
    fields = [
        ("Content-Type", representation.content_type),
        *_validator_fields(representation, cache_status or representation.cache_status),
    ]
    if representation.content_coding or representation.coding is not Coding.IDENTITY:
        fields.append(("Content-Encoding", representation.content_coding or representation.coding.value))
    if representation.use_as_dictionary:
        fields.append(("Use-As-Dictionary", representation.use_as_dictionary))
    fields.extend(representation.fields)
    return _prepare(representation, 200, fields, body)


def _prepare(
    representation: Representation, status: int, fields: list[tuple[str, str]], body: bytes = b""
) -> PreparedAnswer:
    answer = prepare(
        status,
        fields,
        body,
        is_head=representation.is_head,
        is_immutable=representation.expires,
        route=representation.route,
        format=representation.format,
    )
    return replace(answer, is_stale=True) if representation.is_stale else answer


def not_acceptable(offered: Iterable[str], request: Request, *, route: str) -> PreparedAnswer:
    """406 with a list of what is offered."""
    message = "only the following media types are accepted: " + ", ".join(offered)
    return status_reply(406, message, route=route, request=request, fields=[VARY])


def method_not_allowed(
    request: Request, *, route: str, fields: Iterable[tuple[str, str]] = ()
) -> PreparedAnswer:
    """405 for a resource that is read-only."""
    message = "only GET and HEAD are allowed here"
    return status_reply(405, message, route=route, request=request, fields=[ALLOW, *fields])


def status_reply(
    code: int, message: str, *, route: str, request: Request, fields: Iterable[tuple[str, str]] = ()
) -> PreparedAnswer:
    """The Status of an error named in the HTTP contract."""
    is_head = request.method == "HEAD"
    return refusal(code, REASONS[code], message, fields=fields, is_head=is_head, route=route)


def retry_fields(code: int) -> list[tuple[str, str]]:
    """Retry-After for a refusal that passes: 429 and 503."""
    return [("Retry-After", "1")] if code in (429, 503) else []


def names(field: str, etag: ETag, *, weak: bool) -> bool:
    """Whether a list of entity tags contains this one (RFC 9110 8.8.3.2: weak comparison ignores the W/
    mark)."""
    for element in field.split(","):
        tag = element.strip(" \t")
        if tag == "*" or tag == etag or (weak and tag.startswith("W/") and tag[2:] == etag):
            return True
    return False


def _validator_fields(representation: Representation, status: CacheStatus | None) -> list[tuple[str, str]]:
    control = cache_control(is_immutable=representation.is_immutable, is_private=representation.is_private)
    vary = VARY_BY_DICTIONARY if representation.varies_by_dictionary else VARY
    fields = [control, ("ETag", representation.etag), vary]
    if status is not None:
        fields.append(("Cache-Status", status))
    return fields


def represent(
    request: Request, *what: str, content_type: str, route: str, format: str, is_private: bool,
    fields: tuple[tuple[str, str], ...] = (),
) -> Representation:  # fmt: skip
    """The representation of what is asked for; its ETag follows from ``what`` it is made of."""
    coding = coding_for(request.accept_encoding)
    named = "\0".join((RENDERER, coding.value, request.query, *what))
    return Representation(
        content_type=content_type,
        etag=ETag(f'"{hashlib.sha256(named.encode()).hexdigest()[:32]}"'),
        route=route,
        format=format,
        coding=coding,
        is_private=is_private,
        is_head=request.method == "HEAD",
        fields=fields,
    )


def prepare_unstored(representation: Representation, body: bytes, code: int = 200) -> PreparedAnswer:
    """An answer that nobody keeps: the same question has another one soon."""
    fields = [("Content-Type", representation.content_type), NO_STORE, *representation.fields]
    if representation.coding is not Coding.IDENTITY:
        fields.append(("Content-Encoding", representation.coding.value))
    return prepare(
        code,
        fields,
        body,
        is_head=representation.is_head,
        route=representation.route,
        format=representation.format,
    )
