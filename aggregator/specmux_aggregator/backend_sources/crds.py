"""CustomResourceDefinitions as origin: published as an apiserver would publish them.

They come from the files of a directory or from a cluster. Every file is examined, whatever its name and
folder; those with other content are skipped. An invalid manifest is a note, and the rest of its group-version
remains.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Protocol

from specmux_aggregator.backend_sources.outcome import Outcome, UnchangedOffers, seen_of
from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.model.backend import Backend, BackendKind
from specmux_aggregator.model.failure import Cause, Failure, build_failure
from specmux_aggregator.model.observation import Hash, Observation
from specmux_aggregator.upstream.client import MovedDocument, Payload
from specmux_aggregator.workers.crds import CRDsBuilt, Manifest
from specmux_aggregator.workers.documents import build_manifests
from specmux_aggregator.workers.worker import Worker
from specmux_converters.crd import BUNDLED, Templates
from specmux_converters.document import Limits as DocumentLimits
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a manifest cannot be read."""

    reason: str


class Manifests(Protocol):
    """A collection of named manifests."""

    async def scan(self) -> Mapping[str, Hashable] | Failure:
        """All manifests, in order of precedence. A value changes whenever its manifest does."""
        ...

    async def templates(self) -> Templates:
        """The templates shared by the documents of the cluster."""
        ...

    def manifest(self, name: str) -> Manifest | Unreadable:
        """A manifest named by ``scan``, with its bytes. Blocks."""
        ...


@dataclass(frozen=True, slots=True)
class _SentManifest:
    """A manifest as last sent."""

    fingerprint: Hashable
    manifest: Manifest
    """Without its bytes."""


class CRDsOrigin:
    """The manifests of one backend."""

    def __init__(
        self, backend: Backend, manifests: Manifests, worker: Worker, *, limits: DocumentLimits
    ) -> None:
        self._backend = backend
        self._manifests = manifests
        self._worker = worker
        self._limits = limits
        self._sent: dict[str, _SentManifest] = {}
        self._templates = BUNDLED

    async def observe(self, last: Observation) -> Outcome:
        found = await self._manifests.scan()
        if isinstance(found, Failure):
            return found
        templates = await self._manifests.templates()
        known = {name: sent.fingerprint for name, sent in self._sent.items()}
        is_known = found == known and templates == self._templates
        if is_known and last.failure is None and last.attempted:
            return UnchangedOffers()
        # A document restored from an earlier run must be delivered once by this one.
        held = {key: offer.hash for key, offer in last.offers.items()} if self._sent else {}
        try:
            built, sent, notes = await self._built(found, held, templates)
        except WorkerFailed as error:
            return build_failure(error)
        self._sent, self._templates = sent, templates
        offered = {document.group_version for document in built.documents}
        kept = {key: listed for key, listed in last.resources.items() if key in offered}
        return seen_of(
            BackendKind.CRDS,
            built.documents,
            notes=(*notes, *built.notes),
            seconds=built.seconds,
            resources={**kept, **built.resources},
        )

    async def document(
        self, group_version: GroupVersion, *, hash: Hash, accept_gzip: bool
    ) -> Payload | MovedDocument | Failure:
        """Not called in practice: documents of manifests stay in memory until superseded."""
        return Failure(Cause.NOT_FOUND, "superseded by what the manifests say now")

    async def close(self) -> None:
        self._sent.clear()

    async def _built(
        self, found: Mapping[str, Hashable], held: dict[GroupVersion, Hash], templates: Templates
    ) -> tuple[CRDsBuilt, dict[str, _SentManifest], list[str]]:
        """The worker's result for the manifests; sends it changed ones, and those that it has lost."""
        wanted: Set[str] = {name for name, now in found.items() if self._fingerprint(name) != now}
        while True:
            manifests, sent, notes = await asyncio.to_thread(self._read, found, wanted)
            built = await self._worker.build(
                build_manifests,
                self._backend.name,
                manifests,
                owned=self._backend.group_versions,
                held=held,
                limits=self._limits,
                templates=templates,
            )
            if isinstance(built, CRDsBuilt):
                return built, sent, notes
            if built.names <= wanted:
                raise WorkerFailed("the worker forgets what it is sent")
            wanted |= built.names

    def _fingerprint(self, name: str) -> Hashable:
        sent = self._sent.get(name)
        return sent.fingerprint if sent else None

    def _read(
        self, found: Mapping[str, Hashable], wanted: Set[str]
    ) -> tuple[tuple[Manifest, ...], dict[str, _SentManifest], list[str]]:
        """Everything for the worker, with bytes where needed. Unreadable manifests are left out."""
        manifests: list[Manifest] = []
        sent: dict[str, _SentManifest] = {}
        notes: list[str] = []
        for name, fingerprint in found.items():
            manifest = self._manifests.manifest(name) if name in wanted else self._sent[name].manifest
            if isinstance(manifest, Unreadable):
                notes.append(f"{cut(name)}: unreadable: {manifest.reason}")
                continue
            manifests.append(manifest)
            sent[name] = _SentManifest(fingerprint, replace(manifest, data=None))
        return tuple(manifests), sent, notes
