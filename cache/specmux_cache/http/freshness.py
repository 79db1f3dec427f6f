"""Whether a stored answer may be used, what to ask for it, and what the server's answer means. Pure.

RFC 9111 for a private cache, with two rules of KEP-2896 before it: a hash URL is fresh for ever whatever its
fields say (the reference sends ``no-cache, private`` beside ``public, immutable``, and an Expires that is no
date), and what changes under a fixed URL is asked for every time. Nothing is fresh by heuristics (RFC 9111
4.2.2 allows them, no more).
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from specmux_cache.http.header_fields import (
    Fields,
    directives,
    end_to_end,
    first,
    http_date,
    joined,
    listed,
    replaced,
    seconds,
)
from specmux_cache.http.responses import Answer, Selecting, StoredHead
from specmux_converters.deferred_dataclasses import dataclass

CLOCK_SKEW: Final = 5.0
"""Seconds that an answer may seem to come from the future before the clock is held to have been set back."""
NOT_FROM_304: Final = frozenset(
    {"content-encoding", "content-length", "content-md5", "content-range", "content-type", "etag"}
)
"""Describe the body that is held, and no 304 changes that: client-go's cache takes Content-Type over from
a 304, and kubectl then reported no resources at all. Nor its ETag, which is the one that matched."""
AGAINST_STALE: Final = frozenset({"no-cache", "must-revalidate", "proxy-revalidate", "s-maxage"})
"""Directives that forbid a stale answer (RFC 9111 4.2.4). Two of them bind shared caches only; one
directory may serve many programs, so they bind us as well."""


class FreshnessRule(Enum):
    """What kind of URL an answer came from."""

    REVALIDATED = "revalidated"
    """The root, and documents without a hash: asked for every time, or trusted for ``root_ttl``."""
    HASHED = "hashed"
    """Its URL carries a hash: fresh for ever."""
    PLAIN = "plain"
    """RFC 9111."""


class Use(Enum):
    """What to do with a stored answer."""

    FRESH = "fresh"
    STALE_WHILE_REVALIDATE = "stale while revalidate"
    """Use it, and ask in the background."""
    ASK = "ask"


class FreshnessOutcome(Enum):
    """What an answer to our request means."""

    STORE = "store"
    NOT_KEPT = "not kept"
    """A whole answer that may not be kept."""
    FRESHEN = "freshen"
    REPEAT = "repeat"
    """A 304 that is not about what we hold: ask again without conditions."""
    REDIRECT = "redirect"
    REFUSED = "refused"
    """406 or 415: not in this media type."""
    MISSING = "missing"
    FAILED = "failed"
    """The server cannot now; a stale answer may stand in."""
    DENIED = "denied"
    """Anything else: no stored answer stands in for a refusal."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Seconds beyond freshness for which a stored answer may be used."""

    root_ttl: float = 0.0
    stale_while_revalidate: float = 0.0
    stale_if_error: float = 86400.0


def usage(held: StoredHead, rule: FreshnessRule, tolerance: Tolerance, *, now: float) -> Use:
    """Whether a stored answer may be used without asking."""
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
    """Whether a stored answer may be used, as stale, because the server cannot be asked."""
    if rule is FreshnessRule.HASHED:
        # An older revision: when it was confirmed last says nothing of how long it has been out of date.
        return tolerance.stale_if_error > 0
    age = age_of(held, now=now)
    if rule is FreshnessRule.REVALIDATED:
        return age < tolerance.root_ttl + tolerance.stale_if_error
    allowed = seconds(directives(held.fields).get("stale-if-error", "")) or 0
    return not _forbids_stale(held.fields) and age < _lifetime(held) + max(tolerance.stale_if_error, allowed)


def age_of(held: StoredHead, *, now: float) -> float:
    """Seconds (RFC 9111 4.2.3). Infinite when it cannot be known, and when the clock was set back since."""
    if now < held.received_at - CLOCK_SKEW:
        return float("inf")
    received = max(held.received_at, held.requested_at)
    date = http_date(first(held.fields, "date"))
    apparent = 0.0 if date is None else max(0.0, received - date)
    # RFC 9111 5.1 would have an Age that is no number ignored, and of several the first taken; to ask costs
    # less than to trust either.
    given = seconds(joined(held.fields, "age") or "0")
    if given is None:
        return float("inf")
    corrected = given + max(0.0, received - held.requested_at)
    return max(apparent, corrected) + max(0.0, now - received)


def conditions(held: StoredHead, rule: FreshnessRule) -> Fields:
    """The fields that make a request for it conditional."""
    if held.etag is not None:
        return (("if-none-match", held.etag),)
    modified = first(held.fields, "last-modified")
    # The reference's root carries the time of the request as Last-Modified: a root that changed within the
    # second would be confirmed. Without an ETag it is asked for anew.
    if rule is FreshnessRule.REVALIDATED or modified is None:
        return ()
    return (("if-modified-since", modified),)


def outcome(answer: Answer, held: StoredHead | None, rule: FreshnessRule) -> FreshnessOutcome:
    """What the answer means for a request that was conditional on ``held``."""
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
    """Only whole, good answers that the server has not asked us to forget."""
    said = directives(answer.fields)
    if answer.status != 200 or "no-store" in said:
        return False
    if rule is FreshnessRule.HASHED and "no-cache" in said and "immutable" not in said:
        return False  # what is current, of a server that does not know the hash (kube-openapi says both)
    return rule is not FreshnessRule.PLAIN or "*" not in listed(answer.fields, "vary")


def freshened(held: StoredHead, answer: Answer) -> StoredHead:
    """What is held, confirmed by a 304: its fields and times, never what describes the body."""
    news = tuple(pair for pair in end_to_end(answer.fields) if pair[0] not in NOT_FROM_304)
    # Age belongs to the answer that is being confirmed; a 304 without one is from the origin itself.
    kept = tuple(pair for pair in held.fields if pair[0] != "age")
    return replace(
        held,
        fields=replaced(kept, news),
        requested_at=answer.requested_at,
        received_at=answer.received_at,
    )


def selecting_of(answer: Answer, request: Fields) -> Selecting:
    """What the request said in the fields that the answer varies on."""
    return MappingProxyType(
        {name: joined(request, name) for name in sorted(set(listed(answer.fields, "vary")))}
    )


def selects(held: StoredHead, request: Fields) -> bool:
    """Whether the answer was made for a request like this one (RFC 9111 4.1)."""
    return all(_normal(joined(request, name)) == _normal(value) for name, value in held.selecting.items())


def _normal(value: str | None) -> str | None:
    return None if value is None else ",".join(member.strip() for member in value.split(","))


def _lifetime(held: StoredHead) -> float:
    """Seconds for which it was fresh when it was made; 0 where that is not said, or not well."""
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
    """A 304 that names another ETag than ours is about another representation (RFC 9111 4.3.4)."""
    named = first(answer.fields, "etag")
    return named is None or held.etag is None or _opaque(named) == _opaque(held.etag)


def _opaque(etag: str) -> str:
    return etag.strip().removeprefix("W/")
