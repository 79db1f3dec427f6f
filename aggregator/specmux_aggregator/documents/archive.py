"""The last good documents on disk, so that a restarted service has them while a backend is down.

Uses the store of the client library. For each backend it contains a manifest of what the backend offered, and
the JSON of documents by hash. No failure here fails a request: an unusable store is a warning.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

import orjson

from specmux_aggregator.config.settings import Settings
from specmux_aggregator.documents.representations import CodedBody
from specmux_aggregator.http.content_codings import decode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.snapshot import DocumentKey
from specmux_aggregator.tasks import FewThreads
from specmux_cache.errors import StoreError
from specmux_cache.store.keys import Key
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

if TYPE_CHECKING:  # imported where state is kept
    from specmux_cache.store.disk_store import DiskStore

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

MANIFEST: Final = "manifest"
MANIFEST_FORMAT: Final = 1


class StateDirectory:
    """State that outlives the process. All disk work runs in one thread, in order."""

    def __init__(self, store: DiskStore, *, max_document_bytes: int) -> None:
        self._store = store
        self._max_document_bytes = max_document_bytes
        self._thread = FewThreads(1, "state")
        self._identities: dict[BackendName, str] = {}
        self._failing: set[tuple[bool, str]] = set()

    @classmethod
    def open(cls, directory: Path, *, max_bytes: int, max_document_bytes: int) -> StateDirectory | None:
        """None, with a warning, if the directory cannot be used; the service then runs without it."""
        from specmux_cache.store.disk_store import DiskStore, StoreLimits

        try:
            store = DiskStore.open(
                directory,
                limits=StoreLimits(high_bytes=max_bytes, max_body_bytes=max_document_bytes),
                warn=lambda message: logger.warning("state directory: %s", message),
            )
        except StoreError as error:
            logger.warning("state directory is not used: %s", error)
            return None
        return cls(store, max_document_bytes=max_document_bytes)

    async def restore(self, backend: Backend) -> Observation | None:
        """The stored observation of a backend; None if there is none."""
        self._identities[backend.name] = identity(backend)
        return await self._in_thread(self._restore, backend)

    def remember(self, observation: Observation, bodies: Mapping[GroupVersion, bytes]) -> None:
        """Store what the backend offers now, and the gzipped documents that came with it."""
        if observation.failure is not None:
            return
        for group_version, body in bodies.items():
            offer = observation.offers[group_version]
            self.save(
                DocumentKey(observation.backend.name, group_version, offer.hash), CodedBody(Coding.GZIP, body)
            )
        self._thread.submit(self._quietly, self._put_manifest, observation)

    # Compute keys now: when the thread runs, the name may belong to another backend.

    async def load(self, key: DocumentKey) -> bytes | None:
        return await self._in_thread(self._get, self._key(key))

    async def has(self, key: DocumentKey) -> bool:
        return await self._in_thread(self._holds, self._key(key)) is True

    def save(self, key: DocumentKey, json: CodedBody) -> None:
        self._thread.submit(self._quietly, self._put, self._key(key), json)

    async def recall(self, backend: Backend, path: str) -> bytes | None:
        """A stored resource of the backend that is not a document."""
        return await self._in_thread(self._get, _resource_key(backend, path))

    def note(self, backend: Backend, path: str, body: bytes) -> None:
        self._thread.submit(
            self._quietly, self._put, _resource_key(backend, path), CodedBody(Coding.IDENTITY, body)
        )

    async def keep_change(self, name: str, number: int, body: bytes) -> None:
        """Store an entry of the change log; returns when it is written."""
        await self._in_thread(self._put_bytes, _change_key(name, number), body)

    def drop_change(self, name: str, number: int) -> None:
        self._thread.submit(self._quietly, self._store.delete, _change_key(name, number))

    def keep_published(self, body: bytes) -> None:
        """Store what was published when it last settled."""
        self._thread.submit(self._quietly, self._put_bytes, _PUBLISHED, body)

    def keep_beginning(self, at: float) -> None:
        """Store when the change log began; wall clock in seconds."""
        self._thread.submit(self._quietly, self._put_bytes, _BEGINNING, orjson.dumps(at))

    def keep_document(self, name: str, hash: str, body: bytes) -> None:
        """Store a compressed document for comparison with later ones."""
        self._thread.submit(self._quietly, self._put_bytes, document_key(name, hash), body)

    async def recall_changes(self) -> tuple[list[bytes], bytes | None, float | None]:
        """All entries, what was published, and when the log began."""
        found = await self._in_thread(self._get_changes)
        return ([], None, None) if found is None else found

    async def recall_document(self, name: str, hash: str) -> bytes | None:
        return await self._in_thread(self._get, document_key(name, hash))

    async def close(self) -> None:
        """Return when everything is written."""
        await asyncio.to_thread(self._thread.shutdown)
        await asyncio.to_thread(self._store.close)

    async def _in_thread(
        self, function: Callable[P, R | None], *args: P.args, **kwargs: P.kwargs
    ) -> R | None:
        work = partial(self._quietly, function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _quietly(self, function: Callable[P, R | None], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Run disk work. A failure is logged once until it succeeds again, separately for reading and
        writing: a full disk can be read. One kind of write may succeed where others fail, since small bodies
        still fit."""
        is_writing = function.__name__.startswith(("_put", "delete"))
        work = is_writing, function.__name__
        try:
            result = function(*args, **kwargs)
        except StoreError as error:
            if not any(failing[0] is is_writing for failing in self._failing):
                logger.warning("state directory: %s", error)
            self._failing.add(work)
            return None
        self._failing.discard(work)
        return result

    def _restore(self, backend: Backend) -> Observation | None:
        stored = self._store.get(_manifest_key(backend))
        manifest = None if stored is None else read_manifest(stored.body, backend)
        if manifest is None:
            return None
        kept = {
            key: offer
            for key, offer in manifest.offers.items()
            if offer.provenance is Provenance.NATIVE
            or self._holds(Key(backend.name, identity(backend), key, offer.hash, JSON))
        }
        return Observation(
            backend=backend,
            dialect=manifest.dialect,
            offers=kept,
            attempted=True,
            changed_at=manifest.changed_at,
        )

    def _holds(self, wanted: Key) -> bool:
        rows = self._store.rows(wanted.server, wanted.partition, wanted.group_version, wanted.media_type)
        return any(row.key == wanted for row in rows)

    def _get(self, key: Key) -> bytes | None:
        stored = self._store.get(key)
        return None if stored is None else stored.body

    def _get_changes(self) -> tuple[list[bytes], bytes | None, float | None]:
        stored = [self._store.get(row.key) for row in list(self._store.rows(CHANGES, "log"))]
        bodies = [each.body for each in stored if each is not None]
        began_at = self._get(_BEGINNING)
        return bodies, self._get(_PUBLISHED), None if began_at is None else orjson.loads(began_at)

    def _put_bytes(self, key: Key, body: bytes) -> None:
        self._store.put(key, body, metadata={})

    def _put(self, key: Key, json: CodedBody) -> None:
        body = decode_body(json.body, json.coding, max_bytes=self._max_document_bytes)
        self._store.put(key, body, metadata={})

    def _put_manifest(self, observation: Observation) -> None:
        self._store.put(_manifest_key(observation.backend), manifest_json(observation), metadata={})

    def _key(self, key: DocumentKey) -> Key:
        return Key(key.owner, self._identities.get(key.owner, ""), key.group_version, key.hash, JSON)


CHANGES: Final = "changes"
"""Used in place of a backend's name. It cannot clash with a backend of this name, whose partitions are
digests."""
_PUBLISHED: Final = Key(CHANGES, "published", "", "", JSON)
_BEGINNING: Final = Key(CHANGES, "beginning", "", "", JSON)


def document_key(name: str, hash: str) -> Key:
    """The key of a document for comparison."""
    return Key(CHANGES, "documents", name, hash, JSON)


def _change_key(name: str, number: int) -> Key:
    return Key(CHANGES, "log", name, str(number), JSON)


async def open_state(settings: Settings) -> StateDirectory | None:
    """The state directory, if one is configured and usable."""
    if settings.state.directory is None:
        return None
    return await asyncio.to_thread(
        StateDirectory.open,
        settings.state.directory,
        max_bytes=settings.state.max_bytes,
        max_document_bytes=settings.limits.max_document_bytes,
    )


def _manifest_key(backend: Backend) -> Key:
    return Key(backend.name, identity(backend), "", MANIFEST, JSON)


def _resource_key(backend: Backend, path: str) -> Key:
    return Key(backend.name, identity(backend), path, "", JSON)


def identity(backend: Backend) -> str:
    """The part of a backend's configuration that its documents belong to: another address is another
    backend."""
    where = f"{backend.kind.value} {backend.url} {backend.directory or ''}"
    where += f" kubernetes {backend.kubernetes}" if backend.kubernetes else ""
    if backend.found is not None:
        where += f" {backend.found.cluster}"  # service names are the same in every cluster
    return hashlib.sha256(where.encode()).hexdigest()[:32]


def manifest_json(observation: Observation) -> bytes:
    return orjson.dumps(
        {
            "format": MANIFEST_FORMAT,
            "dialect": observation.dialect,
            "changedAt": observation.changed_at,
            "offers": {
                key: [offer.hash, offer.provenance, offer.size, offer.losses, list(offer.loss_examples)]
                for key, offer in observation.offers.items()
            },
        },
        option=orjson.OPT_NON_STR_KEYS,
    )


def read_manifest(body: bytes, backend: Backend) -> Observation | None:
    """The observation in a manifest; None if it is foreign or of another format."""
    try:
        manifest = orjson.loads(body)
        if manifest["format"] != MANIFEST_FORMAT:
            return None
        offers = {
            GroupVersion(key): Offer(
                hash=Hash(str(digest)),
                provenance=Provenance(provenance),
                size=size,
                losses=int(losses),
                loss_examples=tuple(examples),
            )
            for key, (digest, provenance, size, losses, examples) in manifest["offers"].items()
            if backend.owns(GroupVersion(key))
        }
        dialect = BackendKind(manifest["dialect"])
        changed_at = manifest.get("changedAt")
        if changed_at is not None:  # missing in those of earlier releases
            changed_at = float(changed_at)
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError):
        return None
    if dialect is BackendKind.AUTO:
        return None
    return Observation(backend=backend, dialect=dialect, offers=offers, attempted=True, changed_at=changed_at)
