"""A model of the service: what must be published, given what backends have and say, and what readers may see
of it.

Pure Python and nothing of the product: values that a test changes, and functions that say what follows.

* ``published``: the owner and the revision of each group-version, once everybody was asked. A pure function.
* ``Holdings``: whether a root may lose a group-version now.
* ``Reader``: a client that follows redirects between replicas.
* ``PublicationView`` and ``ChangeView``: what a follower knows; both fail when an event was kept from it.
* ``CacheModel``: what a cache may answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

Health = Literal["up", "refuses", "hangs", "fails", "forbids"]
Balance = Literal["alone", "requests", "listed"]
Speech = Literal["v3", "v2", "unhashed"]


@dataclass
class ModelServer:
    """An apiserver process. ``documents``: the revision of each group-version that it has."""

    documents: dict[str, int] = field(default_factory=dict)
    release: int = 30
    health: Health = "up"
    hidden: frozenset[str] = frozenset()
    """What it has but does not list yet: it has just started."""
    whole_since: float = 0.0
    """When it listed all that it has again."""


@dataclass
class ModelBackend:
    """A backend as configured, with the servers behind it."""

    name: str
    servers: list[ModelServer]
    balance: Balance = "alone"
    speaks: Speech = "v3"
    priority: int = 0
    is_found: bool = False
    is_fallback: bool = False
    owns: frozenset[str] | None = None
    """What it may publish; None: everything."""
    excluded: frozenset[str] = frozenset()
    existing: frozenset[str] = frozenset()
    """What its cluster says that exists."""
    is_configured: bool = True

    def may_publish(self, key: str) -> bool:
        return key not in self.excluded and (self.owns is None or key in self.owns)

    @property
    def is_up(self) -> bool:
        return all(server.health == "up" and not server.hidden for server in self.servers)

    @property
    def is_closed(self) -> bool:
        """It lets nobody in, and nobody gave the service credentials for it."""
        is_forbidden = all(server.health == "forbids" for server in self.servers)
        return is_forbidden and self.is_found and not self.is_fallback

    @property
    def rank(self) -> tuple[bool, bool, bool, int, str]:
        return self.is_closed, self.is_fallback, self.is_found, -self.priority, self.name


@lru_cache(maxsize=1 << 10)
def body_of(backend: str, key: str, revision: int) -> tuple[bytes, str]:
    """The bytes of a revision and their hash."""
    body = bytes_of(document_of(backend, key, revision))
    return body, hash_of(body)


def document_of(backend: str, key: str, revision: int) -> dict[str, Any]:
    """The document of a revision; ``marker`` finds it in any form of it."""
    path = f"/{key}/things"
    operation = {
        "description": marker(backend, key, revision),
        "responses": {"200": {"description": "OK"}},
    }
    document = {"info": {"title": key, "version": "v1"}, "paths": {path: {"get": operation}}}
    return {"openapi": "3.0.0", **document}


def marker(backend: str, key: str, revision: int) -> str:
    return f"revision {revision} of {key} at {backend}."


def bytes_of(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def hash_of(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


def offers_of(backend: ModelBackend) -> dict[str, int]:
    """What all of its servers offer together: of one group-version the newest release has it, then the server
    with most documents, then the highest hash. The order of the servers means nothing."""
    best: dict[str, tuple[tuple[int, int, str], int]] = {}
    for server in backend.servers:
        listed = {key: revision for key, revision in server.documents.items() if backend.may_publish(key)}
        for key, revision in listed.items():
            # Nobody knows which of several servers answered where each request may go to another.
            release = server.release if backend.balance == "listed" else 0
            rank = (release, len(listed), body_of(backend.name, key, revision)[1])
            if key not in best or rank > best[key][0]:
                best[key] = rank, revision
    return {key: revision for key, (_, revision) in best.items()}


def published(backends: Iterable[ModelBackend]) -> dict[str, tuple[str, int]]:
    """The owner and revision of each group-version. Who answered first means nothing."""
    found: dict[str, tuple[str, int]] = {}
    for backend in sorted(backends, key=lambda each: each.rank):
        for key, revision in offers_of(backend).items():
            found.setdefault(key, (backend.name, revision))
    return found


NOTICED_AFTER = 80.0
"""Seconds after which every replica knows what a backend has: the longest pause between two checks, and
more."""


class Holdings:
    """Who has which group-version. What a backend has had for long enough to be noticed must not vanish from
    a root as long as it has it: that it fails, starts, is slow, or is one of several servers changes
    nothing."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int, str], float] = {}
        self._noticed: set[tuple[str, int, str]] = set()

    def note(self, backends: Iterable[ModelBackend], now: float) -> None:
        has = {
            (backend.name, number, key): server.health == "up"
            for backend in backends
            if backend.is_configured and backend.balance != "requests"  # found by chance, in time
            for number, server in enumerate(backend.servers)
            for key in server.documents
            if backend.may_publish(key)
        }
        self._since = {each: self._since.get(each, now) for each, is_up in has.items() if is_up}
        self._noticed |= {each for each, since in self._since.items() if now - since >= NOTICED_AFTER}
        self._noticed &= has.keys()

    def owners(self, key: str) -> set[str]:
        """The backends for whose sake it must not vanish where they were heard."""
        return {backend for backend, _, other in self._noticed if other == key}


class Reader:
    """A client behind a balancer that sends each request to the next replica. Two redirects in a row send it
    in circles for as long as the replicas disagree."""

    redirects_max = 1

    def __init__(self) -> None:
        self.redirects = 0

    def take(self, status: int, *, asked: str | None, body: bytes, location: str, is_current: bool) -> None:
        """``asked``: the hash in the URL; ``is_current``: the answer may be kept for ever."""
        if status == 301:
            self.redirects += 1
            assert self.redirects <= self.redirects_max, (
                f"redirected {self.redirects} times, now to {location}"
            )
            assert location, "a redirect leads nowhere"
        if status == 200 and is_current:
            assert asked is not None and hash_of(body) == asked, "the body under a hash URL has another hash"


Versions = Mapping[str, tuple[str, str] | None]
"""Hash and owner by group-version; None: removed."""


class PublicationView:
    """What a follower of publications believes is published."""

    def __init__(self) -> None:
        self.since: int | None = None
        self.known: dict[str, tuple[str, str]] | None = None
        """None: it knows that it knows nothing."""

    def take(self, name: str, number: int, versions: Versions) -> None:
        self.since = number
        if name == "publications":
            self.known = {key: version for key, version in versions.items() if version is not None}
        elif name == "reset":
            self.since, self.known = None, None
        elif self.known is not None:
            for key, version in versions.items():
                assert self.known.get(key) != version, f"{key} is told twice"
                if version is None:
                    del self.known[key]
                else:
                    self.known[key] = version

    def compare(self, versions: Versions) -> None:
        assert self.known is None or self.known == dict(versions), "a publication was kept from a follower"


class ChangeView:
    """What a follower of changes believes: each change begins where the last one of its group-version
    ended."""

    def __init__(self) -> None:
        self.since: int | None = None
        self.known: dict[str, tuple[str, str] | None] = {}
        self.told: set[int] = set()

    def take(
        self, name: str, number: int, key: str, old: tuple[str, str] | None, new: tuple[str, str] | None
    ) -> None:
        if name == "reset":
            self.known = {}
            self.told = set()
        else:
            assert number not in self.told, f"the change {number} is told twice"
            is_same_log = self.since is not None and number // 10**8 == self.since // 10**8
            assert not is_same_log or number == self.since + 1, "ids have a gap, and nothing is said of it"
            assert self.known.get(key, old) == old, f"a change of {key} was kept from a follower"
            self.known[key] = new
            self.told.add(number)
        self.since = number

    def compare(self, versions: Versions) -> None:
        for key, version in self.known.items():
            assert versions.get(key) == version, f"the last change of {key} was kept from a follower"


def take_event(view: PublicationView | ChangeView, name: str, number: int, data: Mapping[str, Any]) -> None:
    """Take an event as it is sent."""
    if isinstance(view, PublicationView):
        view.take(name, number, {key: shown_version(each) for key, each in data.items()})
    elif name == "reset":
        view.take(name, number, "", None, None)
    else:
        view.take(name, number, data["groupVersion"], shown_version(data["old"]), shown_version(data["new"]))


def shown_version(value: Mapping[str, str] | None) -> tuple[str, str] | None:
    return None if value is None else (value["hash"], value["backend"])


@dataclass
class CacheEntry:
    body: bytes
    may_be_gone: bool = False
    """A limit, a damage, an age or a death may have taken it."""
    also: tuple[bytes, ...] = ()
    """What else it may be: a writer died over it."""


class CacheModel:
    """What was put, by key. A cache answers with that, or with nothing where something happened to it."""

    def __init__(self) -> None:
        self.entries: dict[object, CacheEntry] = {}

    def put(self, key: object, body: bytes) -> None:
        self.entries[key] = CacheEntry(body)

    def put_and_die(self, key: object, body: bytes) -> None:
        """The old one goes when the new one comes, in one step: one of the two is there."""
        before = self.entries.get(key)
        also = () if before is None else (before.body, *before.also)
        self.entries[key] = CacheEntry(body, may_be_gone=before is None or before.may_be_gone, also=also)

    def delete(self, key: object) -> None:
        self.entries.pop(key, None)

    def doubt(self, keys: Iterable[object] | None = None) -> None:
        """Something happened that may have cost these, or any."""
        for key in self.entries if keys is None else keys:
            if key in self.entries:
                self.entries[key].may_be_gone = True

    def check(self, key: object, found: bytes | None) -> None:
        entry = self.entries.get(key)
        if found is None:
            assert entry is None or entry.may_be_gone, "the cache lost an entry, and nothing happened to it"
            self.entries.pop(key, None)
            return
        assert entry is not None, "the cache has what was never put, or was removed"
        assert found == entry.body or found in entry.also, (
            "the cache answers with something else than was put"
        )
        self.entries[key] = CacheEntry(found, may_be_gone=entry.may_be_gone)
