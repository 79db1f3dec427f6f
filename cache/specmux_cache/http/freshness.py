"""Decide whether a stored answer may be used, what to request, and what an answer means. Pure.

RFC 9111 for a private cache, preceded by two rules of KEP-2896: a hash URL is fresh forever whatever its
header fields (the reference sends ``no-cache, private`` beside ``public, immutable``, and an invalid
Expires), and a fixed URL with changing content is requested every time. There is no heuristic freshness
(which RFC 9111 4.2.2 merely allows).
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from specmux_cache.http.messages import (
    Answer,
    Fields,
    Selecting,
    StoredHead,
    directives,
    end_to_end,
    first,
    http_date,
    join_values,
    list_members,
    replace_fields,
    seconds,
)
from specmux_converters.lazy.dataclasses import dataclass

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
        case 408 | 429:
            return FreshnessOutcome.FAILED
        case status if status >= 500:
            return FreshnessOutcome.FAILED
        case _:
            return FreshnessOutcome.DENIED


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
