"""Obtain entries: combine the store, the server, and the decisions of ``http.caching``.

Invariant: only a complete 200 of the stated type is stored; errors never are.
"""

# Theory of operation
#
# A caller's request becomes a run. Callers with equal requests share one (``Flights``), the look into the
# store included: a caller that looked while another's answer was being stored would fetch it again. A run
# continues when its callers are gone, for its answer is stored. Among processes, a lock per document does
# the same for URLs with a hash; it only saves work, and who waits too long fetches as well.
#
# ``http.caching`` decides, without I/O, what a stored answer may be used for and what a received one means.
# This module only acts: it sends at most one request for each kind of repetition. A 304 about another
# representation is asked again without conditions, a refused media type is replaced by the next one, one
# redirect within the server is followed. None of these is repeated, so no server can keep a run going.
#
# A redirect moves a request to another hash of the same path. Its target was not asked for by a caller, so
# it is looked up in the store first: a server that has moved on costs one small answer, not a document.
#
# Failures are divided by who could know better. A server that does not answer, or answers 408, 429 or 5xx,
# may be replaced by a stored answer, marked stale, within ``stale_if_error``. A refusal (401, 403, 404)
# never is: it is the server's answer.
#
# A document under a hash may be sent as its difference from the predecessor that is stored, if the server
# said so with that (``http.dictionaries``). Whatever is wrong with such an answer, it is asked for again as a
# whole, once.
#
# What must never happen: an answer stored that is truncated, of another type than stated, or not a 200; a
# request to another origin or path than the caller's; an entry of one partition given to another.

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, TypeVar, get_args
from urllib.parse import urlsplit

from specmux_cache.errors import (
    BadAnswer,
    MediaTypeRefused,
    NotCached,
    RedirectRefused,
    RequestError,
    UnexpectedStatus,
)
from specmux_cache.http.caching import (
    Answer,
    Fields,
    FreshnessOutcome,
    FreshnessRule,
    Selecting,
    Use,
    conditions,
    fields_to_text,
    first,
    freshen_head,
    head_to_store,
    is_passing,
    may_stand_in,
    outcome,
    selecting_of,
    selects,
    sentence_of,
    usage,
)
from specmux_cache.http.media_types import Refusals, accept_field, canonical, find_answer_type
from specmux_cache.http.server import Server, hash_in, name_of
from specmux_cache.reading.client_runtime import Calls, Flights
from specmux_cache.reading.entry_store import Entry, EntryStore, read_stored_head
from specmux_cache.reading.flight_locks import FlightLocks
from specmux_cache.reading.options import CacheOptions
from specmux_cache.reading.results import Event, EventKind
from specmux_cache.store.bodies import digest_of
from specmux_converters.errors import cut
from specmux_converters.lazy.dataclasses import dataclass

if TYPE_CHECKING:  # imported for a request, and where a stored document permits it
    from specmux_cache.http.dictionaries import UsableDictionary
    from specmux_cache.http.transport import Transport

T = TypeVar("T")

CHECK_INLINE: Final = 64 * 1024
"""Bytes of a body up to which parsing is faster than passing it to a thread."""


@dataclass(frozen=True, slots=True)
class ExchangeRequest:
    """The request of a caller."""

    name: str
    """Group-version, or path with query."""
    target: str
    """Path and query below the server's base path."""
    rule: FreshnessRule
    hash: str = ""
    accepted: tuple[str, ...] = ()
    """Media types, best first. () accepts whatever the server returns, with any status."""
    fields: Fields = ()
    """Additional request fields; answers may vary on them."""
    check: Callable[[bytes, str], object] | None = None
    """Raises ValueError for a body that is not of this media type."""


@dataclass(frozen=True, slots=True)
class ExchangeResult:
    """The result for a caller."""

    entry: Entry
    from_cache: bool = False
    """Whether no body was transferred."""
    is_stale: bool = False
    is_confirmed: bool = False
    """Whether the server was asked, even if it could not answer."""
    status: int = 200


class EventLog:
    """Counts events and passes them on. The hook is called on the event loop: it must not block or raise."""

    def __init__(self, hook: Callable[[Event], None] | None) -> None:
        self._hook = hook
        self._counts: Counter[EventKind] = Counter(dict.fromkeys(get_args(EventKind), 0))
        self.bytes_fetched = 0

    def record(self, kind: EventKind, name: str, *, size: int = 0, seconds: float = 0.0) -> None:
        self._counts[kind] += 1
        if kind == "fetched":
            self.bytes_fetched += size
        if self._hook is not None:
            self._hook(Event(kind, name, size, seconds))

    def counts(self) -> Mapping[EventKind, int]:
        return MappingProxyType(dict(self._counts))


@dataclass(frozen=True, slots=True)
class ClientRuntime(Generic[T]):
    """The runtime of a client: calls, flights, events, and its clock."""

    calls: Calls
    flights: Flights[T]
    events: EventLog
    warn: Callable[[str], None]
    clock: Callable[[], float]


class Exchange:
    """Caches and fetches the entries of one server. Raises RequestError, NotCached."""

    def __init__(
        self,
        server: Server,
        entry_store: EntryStore,
        *,
        transport: Callable[[], Transport],
        locks: FlightLocks,
        options: CacheOptions,
        runtime: ClientRuntime[ExchangeResult],
    ) -> None:
        """``transport``: called for each request, so that a client that needs none makes none."""
        self._server = server
        self._entry_store = entry_store
        self._transport = transport
        self._flights = runtime.flights
        self._locks = locks
        self._calls = runtime.calls
        self._options = options
        self._tolerance = options.tolerance
        self._events = runtime.events
        self._clock = runtime.clock
        self._refusals = Refusals(options.refusal_ttl, clock=runtime.clock)

    async def obtain(self, wanted: ExchangeRequest, *, refresh: bool = False) -> ExchangeResult:
        """From the cache if allowed; ``refresh`` always asks the server."""
        # The lookup is part of the shared run: a caller that looked while another's answer was being stored
        # would request it again.
        return await self._flights.run((wanted, refresh), lambda: self._look_or_ask(wanted, refresh))

    async def close(self) -> None:
        await self._flights.close()

    async def _look_or_ask(self, wanted: ExchangeRequest, refresh: bool) -> ExchangeResult:
        entry = await self._find(wanted)
        if self._options.offline:
            return await self._offline(wanted, entry)
        if entry is not None and not refresh:
            match self._usage(wanted, entry):
                case Use.FRESH:
                    return self._hit(entry)
                case Use.STALE_WHILE_REVALIDATE if self._flights.go_on:
                    self._flights.start((wanted, "behind"), lambda: self._ask(wanted, entry))
                    return self._hit(entry, is_stale=True)
                case Use.STALE_WHILE_REVALIDATE | Use.ASK:
                    pass
        if wanted.rule is not FreshnessRule.HASHED:
            return await self._ask(wanted, entry)
        async with self._locks.hold((str(self._server), wanted.name, wanted.hash, wanted.accepted)):
            # Another process may have fetched it meanwhile.
            entry = await self._find(wanted)
            return await self._ask(wanted, None) if entry is None else self._hit(entry)

    async def _ask(self, wanted: ExchangeRequest, entry: Entry | None) -> ExchangeResult:
        try:
            return await self._request_until_usable(wanted, entry, is_moved=False)
        except RequestError as error:
            self._events.record("failed", wanted.name)
            if isinstance(error, UnexpectedStatus) and not is_passing(error.status):
                raise
            stand_in = await self._stand_in(wanted, entry)
            if stand_in is None:
                raise
            return replace(self._hit(stand_in, is_stale=True), is_confirmed=True)

    async def _request_until_usable(
        self, wanted: ExchangeRequest, entry: Entry | None, *, is_moved: bool
    ) -> ExchangeResult:
        """Send requests until there is a usable answer. Each kind of retry happens once."""
        accepted = self._refusals.list_supported(wanted.name, wanted.accepted)
        if wanted.accepted and not accepted:
            raise MediaTypeRefused(406, url=self._server.url(wanted.target))
        answer = await self._get(wanted, accepted, entry)
        meaning = outcome(answer, entry.held if entry else None, wanted.rule)
        if meaning is FreshnessOutcome.REPEAT:
            answer, entry = await self._get(wanted, accepted, None), None
            meaning = outcome(answer, None, wanted.rule)
        if meaning is FreshnessOutcome.REFUSED and accepted:
            self._events.record("refused", wanted.name)
            self._refusals.note(wanted.name, accepted)
            left = self._refusals.list_supported(wanted.name, accepted)
            if not left or left == accepted:
                raise MediaTypeRefused(answer.status, url=self._server.url(wanted.target))
            accepted = left
            answer = await self._get(wanted, accepted, None)
            meaning = outcome(answer, None, wanted.rule)
        if meaning is FreshnessOutcome.REDIRECT and wanted.accepted:
            return await self._follow_redirect(wanted, answer, is_moved=is_moved)
        return await self._conclude_answer(wanted, accepted, entry, answer, meaning)

    async def _follow_redirect(
        self, wanted: ExchangeRequest, answer: Answer, *, is_moved: bool
    ) -> ExchangeResult:
        url = self._server.url(wanted.target)
        if is_moved:
            raise RedirectRefused("a second redirect", url=url)
        target = self._server.target(first(answer.fields, "location") or "", beside=wanted.target)
        if target is None:
            raise RedirectRefused(
                "a redirect to another server", url=url, target=first(answer.fields, "location") or ""
            )
        if _path(target) != _path(wanted.target):
            raise RedirectRefused("a redirect to another document", url=url)
        if target == wanted.target:
            raise RedirectRefused("a redirect to itself", url=url)
        self._events.record("redirected", wanted.name)
        hash_ = hash_in(target)
        moved = replace(
            wanted, target=target, hash=hash_, rule=FreshnessRule.HASHED if hash_ else wanted.rule
        )
        entry = await self._find(moved)
        if entry is not None and self._usage(moved, entry) is Use.FRESH:
            return self._hit(entry)
        return await self._request_until_usable(moved, entry, is_moved=True)

    async def _conclude_answer(
        self,
        wanted: ExchangeRequest,
        accepted: tuple[str, ...],
        entry: Entry | None,
        answer: Answer,
        meaning: FreshnessOutcome,
    ) -> ExchangeResult:
        if meaning is FreshnessOutcome.FRESHEN and entry is not None:
            entry = replace(entry, held=freshen_head(entry.held, answer))
            await self._entry_store.touch(entry.key, entry.held)
            self._events.record("revalidated", wanted.name, seconds=_seconds(answer))
            return ExchangeResult(entry, from_cache=True, is_confirmed=True)
        if meaning in (FreshnessOutcome.STORE, FreshnessOutcome.NOT_KEPT):
            return await self._store_answer(
                wanted, accepted, entry, answer, is_kept=meaning is FreshnessOutcome.STORE
            )
        if meaning is FreshnessOutcome.REPEAT:
            raise BadAnswer("a 304 to a request without conditions", url=self._server.url(wanted.target))
        stand_in = await self._stand_in(wanted, entry) if meaning is FreshnessOutcome.FAILED else None
        if wanted.accepted or stand_in is not None:
            url = self._server.url(wanted.target)
            raise UnexpectedStatus(answer.status, url=url, sentence=sentence_of(answer))
        fresh = self._entry(wanted, canonical(first(answer.fields, "content-type") or ""), answer)
        return ExchangeResult(fresh, is_confirmed=True, status=answer.status)

    async def _store_answer(
        self,
        wanted: ExchangeRequest,
        accepted: tuple[str, ...],
        before: Entry | None,
        answer: Answer,
        *,
        is_kept: bool,
    ) -> ExchangeResult:
        url = self._server.url(wanted.target)
        content_type = first(answer.fields, "content-type")
        media_type = (
            find_answer_type(content_type, answer.body, accepted)
            if accepted
            else canonical(content_type or "")
        )
        if media_type is None:
            told = cut(canonical(content_type or "") or "no type")
            raise BadAnswer(f"of another type than was asked for: {told}", url=url)
        try:
            if not answer.is_proven:
                await self._check_body(wanted, answer.body, media_type)
        except ValueError as error:
            raise BadAnswer(str(error), url=url) from error
        fresh = self._entry(wanted, media_type, answer)
        if before is not None and (not is_kept or before.key != fresh.key):
            await self._entry_store.delete([before.key])
        is_stored = is_kept and await self._entry_store.put(fresh.key, fresh.body, fresh.held)
        self._events.record("fetched", wanted.name, size=len(fresh.body), seconds=_seconds(answer))
        if not is_stored:
            self._events.record("not_stored", wanted.name, size=len(fresh.body))
        return ExchangeResult(fresh, is_confirmed=True)

    async def _get(self, wanted: ExchangeRequest, accepted: tuple[str, ...], entry: Entry | None) -> Answer:
        fields = wanted.fields
        if accepted:
            fields += (("accept", accept_field(accepted)),)
        if entry is not None:
            fields += conditions(entry.held, wanted.rule)
        dictionary = await self._dictionary(wanted, accepted) if entry is None else None
        if dictionary is not None:
            answer = await self._get_delta(wanted, fields, dictionary)
            if answer is not None:
                return answer
        return await self._transport().get(self._server.url(wanted.target), fields)

    async def _get_delta(
        self, wanted: ExchangeRequest, fields: Fields, dictionary: UsableDictionary
    ) -> Answer | None:
        """The answer, maybe sent as the difference from a stored document; None if that was wrong."""
        try:
            answer = await self._transport().get(self._server.url(wanted.target), fields, dictionary)
            if first(answer.fields, "content-encoding") not in (None, "identity"):
                raise ValueError("in a coding that was not asked for")
            media_type = first(answer.fields, "content-type")
            types = (dictionary.media_type,)
            if answer.is_delta and find_answer_type(media_type, answer.body, types) is None:
                raise ValueError("of another type than its dictionary")
            if answer.is_delta and not answer.is_proven:
                await self._check_body(wanted, answer.body, dictionary.media_type)
                answer = replace(answer, is_proven=True)
        except (BadAnswer, ValueError):
            self._events.record("delta_failed", wanted.name)
            return None
        if answer.is_delta:
            self._events.record("delta", wanted.name, size=len(answer.body), seconds=_seconds(answer))
        return answer

    async def _dictionary(
        self, wanted: ExchangeRequest, accepted: tuple[str, ...]
    ) -> UsableDictionary | None:
        """The predecessor that was used last, if its server permits it for this request."""
        if wanted.rule is not FreshnessRule.HASHED or not accepted:
            return None
        rows = await self._entry_store.rows(wanted.name, accepted[0])
        newest = max(rows, key=lambda row: row.touched_at, default=None)
        held = None if newest is None else read_stored_head(newest.metadata)
        field = None if held is None else first(held.fields, "use-as-dictionary")
        if newest is None or field is None:
            return None
        from specmux_cache.http.dictionaries import UsableDictionary, is_secure, permitted_id

        id_ = permitted_id(field, self._server.base + wanted.target) if is_secure(self._server) else None
        entry = None if id_ is None else await self._entry_store.get(newest.key)
        if entry is None or id_ is None:
            return None
        return UsableDictionary(
            body=entry.body,
            digest=entry.digest,
            hash=entry.key.hash,
            media_type=entry.key.media_type,
            id=id_,
            wanted=wanted.hash,
        )

    async def _find(self, wanted: ExchangeRequest) -> Entry | None:
        """The stored entry in the best available media type."""
        if wanted.accepted:
            return await self._entry_store.first(
                self._entry_store.key(wanted.name, wanted.hash, media) for media in wanted.accepted
            )
        held = [
            (row.key, read_stored_head(row.metadata)) for row in await self._entry_store.rows(wanted.name)
        ]
        matching = [
            (key, found) for key, found in held if found is not None and selects(found, wanted.fields)
        ]
        matching.sort(key=lambda pair: pair[1].received_at, reverse=True)
        return await self._entry_store.first(key for key, _ in matching)

    async def _offline(self, wanted: ExchangeRequest, entry: Entry | None) -> ExchangeResult:
        if entry is not None:
            return self._hit(entry, is_stale=self._usage(wanted, entry) is not Use.FRESH)
        entry = await self._older(wanted)
        if entry is None:
            raise NotCached(wanted.name)
        return self._hit(entry, is_stale=True)

    async def _stand_in(self, wanted: ExchangeRequest, entry: Entry | None) -> Entry | None:
        found = entry or await self._older(wanted)
        if found is None or not may_stand_in(found.held, wanted.rule, self._tolerance, now=self._clock()):
            return None
        return found

    async def _older(self, wanted: ExchangeRequest) -> Entry | None:
        return await self._entry_store.latest(wanted.name, wanted.accepted) if wanted.accepted else None

    def _usage(self, wanted: ExchangeRequest, entry: Entry) -> Use:
        return usage(entry.held, wanted.rule, self._tolerance, now=self._clock())

    def _hit(self, entry: Entry, *, is_stale: bool = False) -> ExchangeResult:
        self._events.record("stale" if is_stale else "hit", entry.key.group_version, size=len(entry.body))
        return ExchangeResult(entry, from_cache=True, is_stale=is_stale)

    def _entry(self, wanted: ExchangeRequest, media_type: str, answer: Answer) -> Entry:
        selecting: Selecting = {} if wanted.accepted else selecting_of(answer, wanted.fields)
        key = self._entry_store.key(wanted.name, wanted.hash, media_type + _variant(selecting))
        return Entry(key, head_to_store(answer, selecting), answer.body, digest_of(answer.body))

    async def _check_body(self, wanted: ExchangeRequest, body: bytes, media_type: str) -> None:
        if wanted.check is None:
            return
        if len(body) <= CHECK_INLINE:
            wanted.check(body, media_type)
        else:
            await self._calls.run(wanted.check, body, media_type)


def _variant(selecting: Selecting) -> str:
    """The part of the key that distinguishes variants of one resource."""
    if not selecting:
        return ""
    text = fields_to_text(tuple((name, repr(value)) for name, value in selecting.items()))
    return ";" + hashlib.sha256(text.encode()).hexdigest()[:16]


def _path(target: str) -> str:
    return urlsplit(name_of(target)).path


def _seconds(answer: Answer) -> float:
    return max(0.0, answer.received_at - answer.requested_at)
