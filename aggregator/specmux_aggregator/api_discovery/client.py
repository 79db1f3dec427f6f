"""Read a backend's own discovery over HTTP: the aggregated form if it has one, else the legacy form.

``/api`` and ``/apis`` may fail separately: what lies below a failed path is unconfirmed, not gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import orjson

from specmux_aggregator.api_discovery.accept import AGGREGATED
from specmux_aggregator.api_discovery.aggregated import KIND, Lists, parse_aggregated
from specmux_aggregator.api_discovery.backend_knowledge import (
    BackendListings,
    DiscoverySource,
    Outcome,
    UnconfirmedResources,
)
from specmux_aggregator.api_discovery.legacy import parse_core_versions, parse_groups, parse_resources
from specmux_aggregator.api_discovery.parsing import BadList
from specmux_aggregator.backend_sources.sightings import Sightings
from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.server_union import git_version, release_of
from specmux_aggregator.upstream.client import BackendClient
from specmux_aggregator.upstream.responses import INLINE_MAX, NotModified, Payload
from specmux_converters.document import Limits as DocumentLimits
from specmux_converters.document import parse
from specmux_converters.errors import ConverterError
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.media_types import JSON
from specmux_converters.resources import Resources

if TYPE_CHECKING:  # imported where a backend has a URL
    from specmux_aggregator.backend_sources.servers import ServerSet


def digest_of_told(told: BackendListings) -> str:
    """A digest that distinguishes servers by their discovery: group-versions, resources and version."""
    lines = [f"{key}={told.listings[key]!r}" for key in sorted(told.listings)]
    version = told.version or b""
    return hashlib.sha256("\n".join(lines).encode() + version).hexdigest()


def unite_listings(servers: Iterable[BackendListings]) -> BackendListings:
    """The union: each group-version's list comes from the highest-ranked server that confirms it. Independent
    of the order of the servers, of which there is at least one."""
    listings: dict[GroupVersion, Resources | UnconfirmedResources] = {}
    ranked = sorted(servers, key=_rank)
    highest = ranked[-1]
    for told in ranked:
        for key, listing in told.listings.items():
            is_confirmed_already = key in listings and not isinstance(listings[key], UnconfirmedResources)
            if not (isinstance(listing, UnconfirmedResources) and is_confirmed_already):
                listings[key] = listing
    forms = {told.form for told in ranked}
    form = DiscoverySource.LEGACY if DiscoverySource.LEGACY in forms else highest.form
    notes = tuple(dict.fromkeys(note for told in ranked for note in told.notes))
    peers_only = frozenset(listings.keys() - highest.listings.keys())
    return BackendListings(form, listings, highest.version, notes, peers_only)


def _rank(told: BackendListings) -> tuple[tuple[int, ...], int, str]:
    return release_of(git_version(told.version)), len(told.listings), digest_of_told(told)


CORE: Final = "/api"
GROUPS: Final = "/apis"

ACCEPT: Final = ", ".join([form.content_type for form in AGGREGATED if form.media_type == JSON] + [JSON])
"""In kubectl's order: servers before 1.30 support v2beta1, all support the last."""

VERSION_MAX: Final = 64 * 1024
"""Bytes of the largest page at ``/version``."""

VALUES_MAX: Final = 200_000
"""Most JSON values of a discovery document: 6,000 resources as Kubernetes writes them."""

STALE: Final = Failure(Cause.SERVER_ERROR, "the backend itself lists it as stale")

SILENT: Final = frozenset({Cause.REFUSED, Cause.UNRESOLVED, Cause.TIMEOUT, Cause.BAD_TLS})
"""Causes after which no further request is sent for now."""

UNLISTED: Final = frozenset({Cause.NOT_FOUND, Cause.CREDENTIALS, Cause.NOT_ACCEPTABLE})
"""Causes after which configured group-versions are requested one by one."""


@dataclass(frozen=True, slots=True)
class _PathListing:
    """The result of reading one of the two paths."""

    form: DiscoverySource
    listings: Mapping[GroupVersion, Resources | UnconfirmedResources] = field(
        default_factory=lambda: MappingProxyType({})
    )
    notes: tuple[str, ...] = ()
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class _Groups:
    """A legacy list of group-versions, whose resources are requested separately."""

    group_versions: tuple[GroupVersion, ...]
    notes: tuple[str, ...]


_Half: TypeAlias = _PathListing | Failure


class BackendDiscovery:
    """Reads the discovery of one backend, through the client for its documents."""

    def __init__(
        self,
        backend: Backend,
        client: BackendClient,
        *,
        limits: DocumentLimits,
        max_group_versions: int,
        servers: ServerSet | None = None,
    ) -> None:
        """``limits``: of one discovery document. ``servers``: those of the backend; None: the one that
        ``client`` asks."""
        self._backend = backend
        self._client = client
        self._servers = servers
        self._told: Sightings[BackendListings] | None = None
        """The reports of the servers behind one address."""
        self._limits = replace(limits, max_values=min(limits.max_values, VALUES_MAX))
        self._max_group_versions = max_group_versions
        self._last: dict[str, _PathListing] = {}
        self.version: bytes | None = None
        """The last JSON object of ``/version``."""

    async def ask(self) -> Outcome | None:
        """The report of the backend; None if it has no discovery."""
        if self._servers is None or not self._servers.are_known:
            self._told = None
            return await self._ask()
        if self._told is None:
            self._told = Sightings(time.monotonic)
        told_by_all = self._told
        outcomes = await self._servers.ask_each(self._ask_by)
        for name, outcome in outcomes:
            if isinstance(outcome, BackendListings):
                told_by_all.note(name or digest_of_told(outcome), outcome)
        told_by_all.expire(kept={server.name for server in self._servers.servers()})
        if not any(isinstance(outcome, BackendListings) for _, outcome in outcomes):
            return outcomes[0][1]
        told = unite_listings([each for _, each in told_by_all.items()])
        self.version = told.version
        return told

    async def _ask_by(self, client: BackendClient) -> Outcome | None:
        """The report of one server, independent of the others."""
        alone = BackendDiscovery(
            self._backend, client, limits=self._limits, max_group_versions=self._max_group_versions
        )
        return await alone.ask()

    async def _ask(self) -> Outcome | None:
        paths = [path for path in (CORE, GROUPS) if self._may_own_below(path)]
        halves: dict[str, _Half] = {}
        is_silent = False
        for path in paths:  # in sequence, over one connection
            halves[path] = half = halves[paths[0]] if is_silent else await self._half(path)
            is_silent = isinstance(half, Failure) and half.cause in SILENT
        if not is_silent:
            await self._ask_version()
        failures = [half for half in halves.values() if isinstance(half, Failure)]
        if len(failures) == len(halves):
            return next((item for item in failures if item.cause is not Cause.NOT_FOUND), None)
        listings: dict[GroupVersion, Resources | UnconfirmedResources] = {}
        notes: list[str] = []
        forms = []
        for path, half in halves.items():
            if isinstance(half, _PathListing):
                self._last[path] = half
                forms.append(half.form)
                listings.update(half.listings)
                notes += half.notes
            elif half.cause is Cause.NOT_FOUND:
                self._last.pop(path, None)
            else:
                notes.append(f"{path}: {half.cause}: {half.detail}")
                listings.update(self._doubt_last(path, half))
        form = DiscoverySource.LEGACY if DiscoverySource.LEGACY in forms else DiscoverySource.AGGREGATED
        return BackendListings(form, listings, self.version, tuple(notes))

    def _may_own_below(self, path: str) -> bool:
        owned = self._backend.group_versions
        return owned is None or any(f"/{key}".startswith(f"{path}/") for key in owned)

    def _doubt_last(
        self, path: str, failure: Failure
    ) -> dict[GroupVersion, Resources | UnconfirmedResources]:
        """The last known lists, as unconfirmed."""
        last = self._last.get(path)
        return {} if last is None else {key: UnconfirmedResources(failure) for key in last.listings}

    async def _half(self, path: str) -> _Half:
        last = self._last.get(path)
        # An unchanged legacy list says nothing about the lists of resources below it.
        etag = last.etag if last is not None and last.form is DiscoverySource.AGGREGATED else None
        answer = await self._client.discovery(path, ACCEPT, etag=etag)
        match answer:
            case NotModified():
                return last or Failure(Cause.UNEXPECTED_STATUS, "304 to a plain request")
            case Failure():
                if answer.cause in UNLISTED and self._backend.group_versions:
                    return await self._ask_configured(path, answer)
                return answer
            case Payload():
                pass
        parsed = await self._parse_aside(answer, path)
        match parsed:
            case Lists(resources, stale, notes):
                told: dict[GroupVersion, Resources | UnconfirmedResources] = {
                    key: UnconfirmedResources(STALE, found) if key in stale else found
                    for key, found in resources.items()
                    if self._is_wanted(key, path)
                }
                return _PathListing(DiscoverySource.AGGREGATED, told, notes, answer.etag)
            case _Groups(group_versions, notes):
                return await self._legacy(
                    [key for key in group_versions if self._is_wanted(key, path)], notes
                )
            case Failure():
                return parsed

    def _is_wanted(self, key: GroupVersion, path: str) -> bool:
        return f"/{key}".startswith(f"{path}/") and self._backend.owns(key)

    async def _ask_configured(self, path: str, failure: Failure) -> _Half:
        """Servers behind an APIService often answer for their group-version but not for the list of all."""
        keys = [
            key for key in self._backend.group_versions or () if split(key) and self._is_wanted(key, path)
        ]
        half = await self._legacy(sorted(keys), ())
        if all(isinstance(told, UnconfirmedResources) for told in half.listings.values()):
            return failure
        return half

    async def _legacy(self, keys: list[GroupVersion], notes: tuple[str, ...]) -> _PathListing:
        """The resources of each; BackendClient limits the number of concurrent requests."""
        answers = await asyncio.gather(*(self._resources(key) for key in keys))
        listings: dict[GroupVersion, Resources | UnconfirmedResources] = {}
        more = list(notes)
        for key, (told, notes_of_one) in zip(keys, answers, strict=True):
            listings[key] = told
            more += notes_of_one
        return _PathListing(DiscoverySource.LEGACY, listings, tuple(more))

    async def _resources(self, key: GroupVersion) -> tuple[Resources | UnconfirmedResources, tuple[str, ...]]:
        answer = await self._client.discovery(f"/{key}", JSON)
        match answer:
            case NotModified():
                return UnconfirmedResources(Failure(Cause.UNEXPECTED_STATUS, "304 to a plain request")), ()
            case Failure():
                return UnconfirmedResources(answer), ()
            case Payload():
                pass
        try:
            if answer.coding is Coding.IDENTITY and len(answer.body) <= INLINE_MAX:
                return self._parse_resources(answer, key)
            return await asyncio.to_thread(self._parse_resources, answer, key)
        except (BadList, BadCoding, TooLarge) as error:
            return UnconfirmedResources(Failure(Cause.BAD_BODY, str(error))), ()

    def _parse_resources(self, payload: Payload, key: GroupVersion) -> tuple[Resources, tuple[str, ...]]:
        return parse_resources(self._plain(payload), key, limits=self._limits)

    async def _parse_aside(self, payload: Payload, path: str) -> Lists | _Groups | Failure:
        try:
            if payload.coding is Coding.IDENTITY and len(payload.body) <= INLINE_MAX:
                return self._parse(payload, path)
            return await asyncio.to_thread(self._parse, payload, path)
        except (BadList, BadCoding, TooLarge) as error:
            return Failure(Cause.BAD_BODY, f"{path}: {error}")

    def _parse(self, payload: Payload, path: str) -> Lists | _Groups:
        body = self._plain(payload)
        # Decide by the body, not by Content-Type, which proxies rewrite.
        if f'"{KIND}"'.encode() in body:
            return parse_aggregated(body, limits=self._limits, max_group_versions=self._max_group_versions)
        parse_list = parse_core_versions if path == CORE else parse_groups
        return _Groups(*parse_list(body, limits=self._limits, max_group_versions=self._max_group_versions))

    def _plain(self, payload: Payload) -> bytes:
        return decode_body(payload.body, payload.coding, max_bytes=self._limits.max_bytes)

    async def _ask_version(self) -> None:
        """Read the version; a backend that cannot report it now keeps its last one."""
        answer = await self._client.discovery("/version", JSON)
        if not isinstance(answer, Payload):
            if isinstance(answer, Failure) and answer.cause is Cause.NOT_FOUND:
                self.version = None
            return
        with contextlib.suppress(BadCoding, TooLarge, ConverterError):
            page = parse(decode_body(answer.body, answer.coding, max_bytes=VERSION_MAX), limits=self._limits)
            # As apiservers write it, so that both pages are equal.
            self.version = orjson.dumps(page, option=orjson.OPT_INDENT_2)
