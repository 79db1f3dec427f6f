"""HTTP caching: answers and their header fields; whether a stored one may be used, what to request, and what
an answer means. Pure.

RFC 9111 for a private cache, preceded by two rules of KEP-2896: a hash URL is fresh forever whatever its
header fields (the reference sends ``no-cache, private`` beside ``public, immutable``, and an invalid
Expires), and a fixed URL with changing content is requested every time. There is no heuristic freshness
(which RFC 9111 4.2.2 merely allows).

Invariant: a malformed field raises nothing; it counts as absent, or as the safe choice.
"""

from __future__ import annotations

import calendar
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias

import orjson

from specmux_cache.http import HOP_BY_HOP
from specmux_converters.json_values import mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern
from specmux_converters.media_types import essence

Fields: TypeAlias = tuple[tuple[str, str], ...]
"""(lower-case name, value), in the order received."""

AGE_MAX: Final = 2**31
"""The value of any larger number of seconds (RFC 9111 1.2.2)."""

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

CLOCK_SKEW: Final = 5.0
"""Seconds by which an answer may seem to come from the future before the clock counts as set back."""
NOT_FROM_304: Final = frozenset(
    {"content-encoding", "content-length", "content-md5", "content-range", "content-type", "etag"}
)
"""Fields that describe the stored body and which a 304 must not change: client-go's cache takes Content-Type
from a 304, and kubectl then reported no resources at all. Also the ETag, since the stored one matched."""
AGAINST_STALE: Final = frozenset({"no-cache", "must-revalidate", "proxy-revalidate", "s-maxage"})
"""Directives that forbid a stale answer (RFC 9111 4.2.4). Two of them concern shared caches only; they are
respected here as well, since one directory may serve many programs."""


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


class FreshnessRule(Enum):
    """The kind of URL of an answer."""

    REVALIDATED = "revalidated"
    """The root, and documents without a hash: requested every time, or trusted for ``root_ttl``."""
    HASHED = "hashed"
    """Its URL contains a hash: fresh forever."""
    PLAIN = "plain"
    """RFC 9111."""


class Use(Enum):
    """The use that may be made of a stored answer."""

    FRESH = "fresh"
    STALE_WHILE_REVALIDATE = "stale while revalidate"
    """Use it, and request it in the background."""
    ASK = "ask"


class FreshnessOutcome(Enum):
    """The meaning of an answer."""

    STORE = "store"
    NOT_KEPT = "not kept"
    """A complete answer that must not be stored."""
    FRESHEN = "freshen"
    REPEAT = "repeat"
    """A 304 about another representation: repeat the request without conditions."""
    REDIRECT = "redirect"
    REFUSED = "refused"
    """406 or 415: not available in this media type."""
    MISSING = "missing"
    FAILED = "failed"
    """The server is temporarily unable; a stale answer may be used instead."""
    DENIED = "denied"
    """Anything else: a refusal is never replaced by a stored answer."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Seconds beyond freshness for which a stored answer may be used."""

    root_ttl: float = 0.0
    stale_while_revalidate: float = 0.0
    stale_if_error: float = 86400.0


def usage(held: StoredHead, rule: FreshnessRule, tolerance: Tolerance, *, now: float) -> Use:
    """The use that may be made of a stored answer, at a time by the client's clock."""
    if rule is FreshnessRule.HASHED:
        return Use.FRESH
    if rule is FreshnessRule.REVALIDATED:
        lifetime, grace = tolerance.root_ttl, tolerance.stale_while_revalidate
    elif _forbids_stale(held.fields):
        lifetime, grace = _lifetime(held), 0.0
    else:
        allowed = seconds(directives(held.fields).get("stale-while-revalidate", "")) or 0
        lifetime, grace = _lifetime(held), max(tolerance.stale_while_revalidate, allowed)
    age = age_of(held, now=now)
    if age < lifetime:
        return Use.FRESH
    return Use.STALE_WHILE_REVALIDATE if age < lifetime + grace else Use.ASK


def may_stand_in(held: StoredHead, rule: FreshnessRule, tolerance: Tolerance, *, now: float) -> bool:
    """Whether a stored answer may be used, marked stale, because the server is unreachable."""
    if rule is FreshnessRule.HASHED:
        # An older revision: its last confirmation does not say how long it has been outdated.
        return tolerance.stale_if_error > 0
    age = age_of(held, now=now)
    if rule is FreshnessRule.REVALIDATED:
        return age < tolerance.root_ttl + tolerance.stale_if_error
    allowed = seconds(directives(held.fields).get("stale-if-error", "")) or 0
    return not _forbids_stale(held.fields) and age < _lifetime(held) + max(tolerance.stale_if_error, allowed)


def age_of(held: StoredHead, *, now: float) -> float:
    """Seconds (RFC 9111 4.2.3). Infinite if unknown, or if the clock was set back since."""
    if now < held.received_at - CLOCK_SKEW:
        return float("inf")
    received = max(held.received_at, held.requested_at)
    date = http_date(first(held.fields, "date"))
    apparent = 0.0 if date is None else max(0.0, received - date)
    # RFC 9111 5.1 would ignore an Age that is not a number, and use the first of several; a request is
    # cheaper than trusting either.
    given = seconds(join_values(held.fields, "age") or "0")
    if given is None:
        return float("inf")
    corrected = given + max(0.0, received - held.requested_at)
    return max(apparent, corrected) + max(0.0, now - received)


def conditions(held: StoredHead, rule: FreshnessRule) -> Fields:
    """The fields that make a request conditional on it."""
    if held.etag is not None:
        return (("if-none-match", held.etag),)
    modified = first(held.fields, "last-modified")
    # The reference's root has the time of the request as Last-Modified: a root that changed within the same
    # second would be confirmed. Without an ETag it is requested unconditionally.
    if rule is FreshnessRule.REVALIDATED or modified is None:
        return ()
    return (("if-modified-since", modified),)


def outcome(answer: Answer, held: StoredHead | None, rule: FreshnessRule) -> FreshnessOutcome:
    """The meaning of an answer to a request that was conditional on ``held``."""
    match answer.status:
        case 200:
            return FreshnessOutcome.STORE if is_storable(answer, rule) else FreshnessOutcome.NOT_KEPT
        case 304:
            return (
                FreshnessOutcome.FRESHEN
                if held is not None and _confirms(answer, held)
                else FreshnessOutcome.REPEAT
            )
        case 301 | 302 | 303 | 307 | 308:
            return FreshnessOutcome.REDIRECT
        case 406 | 415:
            return FreshnessOutcome.REFUSED
        case 404 | 410:
            return FreshnessOutcome.MISSING
        case status if is_passing(status):
            return FreshnessOutcome.FAILED
        case _:
            return FreshnessOutcome.DENIED


def is_passing(status: int) -> bool:
    """Whether a status means a temporary failure."""
    return status in (408, 429) or status >= 500


def is_storable(answer: Answer, rule: FreshnessRule) -> bool:
    """Only complete, successful answers without no-store."""
    said = directives(answer.fields)
    if answer.status != 200 or "no-store" in said:
        return False
    if rule is FreshnessRule.HASHED and "no-cache" in said and "immutable" not in said:
        return False  # the current document of a server that does not know the hash (kube-openapi sends both)
    return rule is not FreshnessRule.PLAIN or "*" not in list_members(answer.fields, "vary")


def freshen_head(held: StoredHead, answer: Answer) -> StoredHead:
    """The stored head, confirmed by a 304: with its fields and times, except those that describe the body."""
    news = tuple(pair for pair in end_to_end(answer.fields) if pair[0] not in NOT_FROM_304)
    # Age belongs to the confirmed answer; a 304 without it comes from the origin itself.
    kept = tuple(pair for pair in held.fields if pair[0] != "age")
    return replace(
        held,
        fields=replace_fields(kept, news),
        requested_at=answer.requested_at,
        received_at=answer.received_at,
    )


def selecting_of(answer: Answer, request: Fields) -> Selecting:
    """The request's values of the fields in Vary."""
    return MappingProxyType(
        {name: join_values(request, name) for name in sorted(set(list_members(answer.fields, "vary")))}
    )


def selects(held: StoredHead, request: Fields) -> bool:
    """Whether the answer matches this request (RFC 9111 4.1)."""
    return all(
        _normal(join_values(request, name)) == _normal(value) for name, value in held.selecting.items()
    )


def _normal(value: str | None) -> str | None:
    return None if value is None else ",".join(member.strip() for member in value.split(","))


def _lifetime(held: StoredHead) -> float:
    """Seconds for which it was fresh when generated; 0 if unstated or malformed."""
    said = directives(held.fields)
    if "no-cache" in said:
        return 0.0
    if "max-age" in said:
        return float(seconds(said["max-age"]) or 0)
    expires, date = http_date(first(held.fields, "expires")), http_date(first(held.fields, "date"))
    if expires is None:
        return 0.0
    return max(0.0, expires - (held.received_at if date is None else date))


def _forbids_stale(fields: Fields) -> bool:
    return not AGAINST_STALE.isdisjoint(directives(fields))


def _confirms(answer: Answer, held: StoredHead) -> bool:
    """A 304 with a different ETag concerns another representation (RFC 9111 4.3.4)."""
    named = first(answer.fields, "etag")
    return named is None or held.etag is None or _opaque(named) == _opaque(held.etag)


def _opaque(etag: str) -> str:
    return etag.strip().removeprefix("W/")
