"""Answers of servers: header fields by RFC 9110 and RFC 9111, and the part that is stored beside the body.

Invariant: a malformed field raises nothing; it counts as absent, or as the safe choice.
"""

from __future__ import annotations

import calendar
import json
import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import orjson

from specmux_converters.json_values import mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern
from specmux_converters.media_types import essence

Fields: TypeAlias = tuple[tuple[str, str], ...]
"""(lower-case name, value), in the order received."""

AGE_MAX: Final = 2**31
"""The value of any larger number of seconds (RFC 9111 1.2.2)."""

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

LOSSES: Final = "specmux-losses"
"""Response field: number of constructs that a document lost in conversion from Swagger 2.0."""
KEPT_FIELDS: Final = frozenset(
    {
        "age",
        "cache-control",
        "content-type",
        "date",
        "etag",
        "expires",
        "last-modified",
        LOSSES,
        "use-as-dictionary",
        "vary",
        "warning",
    }
)
"""The fields that are stored of an answer with too many."""
SENTENCE_MAX: Final = 400
"""Characters of a refusal's message."""
STATUS_MAX: Final = 64 * 1024
"""Bytes of the largest Status that is parsed."""
FIELDS_TEXT_MAX: Final = 8192
"""Characters of the stored fields as text."""

Selecting: TypeAlias = "Mapping[str, str | None]"
"""Request field in Vary -> its value in the request; None if absent (RFC 9111 4.1)."""

_DIRECTIVE: Final = pattern(r"""\s*([^\s,;="]+)\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^\s,]*))?[^,]*(?:,|$)""")
_FIXDATE: Final = pattern(r"[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT")
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_OLDER_DATE: Final = (
    r"(?:[A-Z][a-z]+day, \d\d-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d GMT"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer; gzip or zstd of its body is decoded. Times are seconds since the epoch."""

    status: int
    fields: Fields
    body: bytes
    requested_at: float
    received_at: float
    is_delta: bool = False
    """Whether it was sent as its difference from a stored document."""
    is_proven: bool = False
    """Whether the body has the hash that was requested, so that it need not be parsed."""


@dataclass(frozen=True, slots=True)
class StoredHead:
    """A stored answer without its body."""

    fields: Fields
    requested_at: float
    received_at: float
    """When it was stored or last confirmed by the server."""
    selecting: Selecting

    @property
    def etag(self) -> str | None:
        return first(self.fields, "etag")

    @property
    def is_lossy(self) -> bool:
        return (first(self.fields, LOSSES) or "0") != "0"


def fields_of(pairs: Iterable[tuple[str, str]]) -> Fields:
    """Fields with lower-case names; without values that JSON cannot represent."""
    return tuple((name.lower(), value.encode("utf-8", "replace").decode("utf-8")) for name, value in pairs)


def first(fields: Fields, name: str) -> str | None:
    """The value of the first field with this lower-case name."""
    return next((value for own, value in fields if own == name), None)


def join_values(fields: Fields, name: str) -> str | None:
    """The values of all fields with this name as one list (RFC 9110 5.3)."""
    values = [value.strip() for own, value in fields if own == name]
    return ", ".join(values) if values else None


def list_members(fields: Fields, name: str) -> tuple[str, ...]:
    """The members of a list of tokens, in lower case."""
    members = (member.strip().lower() for member in (join_values(fields, name) or "").split(","))
    return tuple(member for member in members if member)


def directives(fields: Fields) -> Mapping[str, str]:
    """Cache-Control: directive -> argument, "" if it has none. The first of repeated ones counts."""
    found: dict[str, str] = {}
    for match in _DIRECTIVE.finditer(join_values(fields, "cache-control") or ""):
        argument = match[2] or ""
        if len(argument) >= 2 and argument.startswith('"') and argument.endswith('"'):
            argument = re.sub(r"\\(.)", r"\1", argument[1:-1])
        found.setdefault(match[1].lower(), argument)
    return found


def seconds(text: str) -> int | None:
    """delta-seconds (RFC 9111 1.2.2); None for anything but digits."""
    if not (text.isascii() and text.isdigit()):
        return None
    return min(int(text[:20]), AGE_MAX)


def http_date(text: str | None) -> float | None:
    """Seconds since the epoch (RFC 9110 5.6.7). The reference's ``Expires: ... UTC`` is not a valid date."""
    parts = None if text is None else _date_parts(text.strip())
    try:
        return None if parts is None else float(calendar.timegm((*parts, 0, 0, 0)))
    except (ValueError, OverflowError):
        return None


def _date_parts(text: str) -> tuple[int, ...] | None:
    """Year, month, day, hour, minute, second."""
    match = _FIXDATE.fullmatch(text)
    if match is not None and match[2] in _MONTHS and match[3] >= "1000":
        return int(match[3]), _MONTHS[match[2]], int(match[1]), *map(int, match.group(4, 5, 6))
    if match is None and not re.fullmatch(_OLDER_DATE, text):
        return None
    # The two obsolete forms; their parser takes longer to import than explaining a stored document.
    from email.utils import parsedate

    parsed = parsedate(text)
    return None if parsed is None else parsed[:6]


def end_to_end(fields: Fields) -> Fields:
    """Without fields of the connection, those it names, and cookies, which must not be stored."""
    dropped = HOP_BY_HOP | {"set-cookie", "set-cookie2", *list_members(fields, "connection")}
    return tuple((name, value) for name, value in fields if name not in dropped)


def replace_fields(fields: Fields, by: Fields) -> Fields:
    """``fields`` with the values of ``by`` for the names that it has."""
    names = {name for name, _ in by}
    return tuple(pair for pair in fields if pair[0] not in names) + by


def fields_to_text(fields: Fields) -> str:
    return json.dumps(fields, separators=(",", ":"))


def fields_from_text(text: str) -> Fields:
    """Raises ValueError for text that ``fields_to_text`` did not write."""
    pairs = json.loads(text)
    if not isinstance(pairs, list):
        raise ValueError("not header fields")
    return tuple((str(name), str(value)) for name, value in pairs)


def sentence_of(answer: Answer) -> str:
    """The message of a refusal: of a Kubernetes Status, or the first line of plain text."""
    media_type = essence(first(answer.fields, "content-type") or "")
    if media_type == "text/plain":
        return answer.body[:SENTENCE_MAX].decode(errors="replace").strip().partition("\n")[0]
    if media_type != "application/json" or len(answer.body) > STATUS_MAX:
        return ""
    try:
        status = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        return ""
    message = mapping(status).get("message")
    return message[:SENTENCE_MAX] if isinstance(message, str) else ""


def head_to_store(answer: Answer, selecting: Selecting) -> StoredHead:
    """The part of an answer to store."""
    fields = end_to_end(answer.fields)
    if len(fields_to_text(fields)) > FIELDS_TEXT_MAX:
        fields = tuple((name, value[:512]) for name, value in fields if name in KEPT_FIELDS)
    return StoredHead(fields, answer.requested_at, answer.received_at, selecting)
