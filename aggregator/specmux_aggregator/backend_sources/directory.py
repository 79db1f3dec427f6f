"""A directory with any content as origin: OpenAPI v3 files by group-version, Swagger 2.0 files, which are
converted, and CustomResourceDefinitions, which are built together.

Only changed files are read again. A file that becomes unreadable keeps its last content; a removed one
removes its documents. A document precedes one built from manifests. Invariant: every offer was delivered with
its bytes, or the caller has them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from specmux_aggregator.backend_sources.files import DocumentFiles, Fingerprint
from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome, UnchangedOffers
from specmux_aggregator.errors import NoWorker, WorkerFailed
from specmux_aggregator.model.backend import Backend, BackendKind
from specmux_aggregator.model.failure import Cause, Failure, build_failure
from specmux_aggregator.model.observation import Hash, Observation, Provenance
from specmux_aggregator.mounts import NamedFunction
from specmux_aggregator.upstream.client import MovedDocument, Payload
from specmux_aggregator.workers.built import BuiltDocument, FileBuilt
from specmux_aggregator.workers.worker import Worker
from specmux_converters.document import Limits
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion

if TYPE_CHECKING:  # imported where there are manifests, and in the worker process alone
    from specmux_aggregator.backend_sources.crds import CRDsOrigin
    from specmux_aggregator.workers.documents import build_file
else:
    build_file = NamedFunction("specmux_aggregator.workers.documents:build_file")

READ_ATTEMPTS: Final = 3
"""Attempts to read or build a file until it has to change to be tried again."""

NOTHING_FOUND: Final = (
    "{} has no document and no CustomResourceDefinition; files that are put there are served within seconds"
)

_NOTHING: Final = BackendOffers(BackendKind.DIRECTORY, {})


@dataclass(frozen=True, slots=True)
class _File:
    """A file as last read."""

    fingerprint: Fingerprint
    built: tuple[BuiltDocument, ...]
    """Without bytes, which went to the caller."""
    note: str | None
    holds_manifests: bool = False
    failures: int = 0
    """Consecutive failures for reasons that may lie outside the file."""


class DirectoryOrigin:
    """The document files of one directory tree."""

    def __init__(
        self,
        backend: Backend,
        folder: DocumentFiles,
        worker: Worker,
        *,
        limits: Limits,
        max_group_versions: int,
    ) -> None:
        self._backend = backend
        self._folder = folder
        self._worker = worker
        self._limits = limits
        self._max_group_versions = max_group_versions
        self._files: dict[str, _File] = {}

    async def observe(self, last: Observation) -> Outcome:
        try:
            return await self._observe(last)
        except NoWorker as error:
            return build_failure(error)

    async def _observe(self, last: Observation) -> Outcome:
        found = await self._folder.scan()
        if isinstance(found, Failure):
            return found
        changed = [name for name, fingerprint in found.items() if self._is_due(name, fingerprint)]
        if not changed and found.keys() == self._files.keys() and last.failure is None and last.attempted:
            return UnchangedOffers()
        # A document restored from an earlier run must be delivered once by this one.
        held = {key: offer.hash for key, offer in last.offers.items()} if self._files else {}
        bodies: dict[tuple[str, GroupVersion], bytes] = {}
        files = {name: file for name, file in self._files.items() if name in found}
        for name in changed:
            files[name] = await self._read(name, found[name], held, bodies)
        winners = _winners(files)
        for name in {
            name for key, (name, built) in winners.items() if self._lacks(built, name, held, bodies)
        }:
            files[name] = await self._read(name, found[name], {}, bodies)
        self._files = files
        winners = _winners(files)
        notes = tuple(f"{cut(name)}: {file.note}" for name, file in sorted(files.items()) if file.note)
        if not (winners or notes or self.manifests):
            notes = (NOTHING_FOUND.format(self._backend.directory),)
        return BackendOffers(
            BackendKind.DIRECTORY,
            {key: built.offer for key, (_, built) in winners.items()},
            {key: bodies[name, key] for key, (name, _) in winners.items() if (name, key) in bodies},
            notes,
            resources={
                key: built.resources for key, (_, built) in winners.items() if built.resources is not None
            },
        )

    @property
    def manifests(self) -> dict[str, Fingerprint]:
        """The files that contain CustomResourceDefinitions, by name, as of the last scan."""
        return {name: file.fingerprint for name, file in sorted(self._files.items()) if file.holds_manifests}

    async def close(self) -> None:
        self._files.clear()

    def _is_due(self, name: str, fingerprint: Fingerprint) -> bool:
        file = self._files.get(name)
        return file is None or file.fingerprint != fingerprint or 0 < file.failures < READ_ATTEMPTS

    @staticmethod
    def _lacks(
        built: BuiltDocument,
        name: str,
        held: Mapping[GroupVersion, Hash],
        bodies: Mapping[tuple[str, GroupVersion], bytes],
    ) -> bool:
        """Whether a document that was built earlier, and superseded by another file, has to be built again
        for its bytes."""
        return held.get(built.group_version) != built.offer.hash and (name, built.group_version) not in bodies

    async def _read(
        self,
        name: str,
        fingerprint: Fingerprint,
        held: Mapping[GroupVersion, Hash],
        bodies: dict[tuple[str, GroupVersion], bytes],
    ) -> _File:
        last = self._files.get(name)
        kept = last.built if last else ()
        held_manifests = last is not None and last.holds_manifests
        failures = 1 + (last.failures if last and last.fingerprint == fingerprint else 0)
        try:
            data = await asyncio.to_thread(self._folder.read, name)
            built = await self._worker.run(
                build_file,
                name,
                data,
                owned=self._backend.group_versions,
                held=held,
                limits=self._limits,
                max_group_versions=self._max_group_versions,
            )
        except OSError as error:
            note = f"unreadable: {error.strerror or type(error).__name__}"
            return _File(fingerprint, kept, note, held_manifests, failures)
        except NoWorker:  # no file is to blame
            raise
        except WorkerFailed as error:
            return _File(fingerprint, kept, str(error), held_manifests, failures)
        if isinstance(built, Failure):
            return _File(fingerprint, kept, f"refused: {built.detail}", held_manifests)
        return self._keep(name, fingerprint, built, bodies)

    @staticmethod
    def _keep(
        name: str, fingerprint: Fingerprint, built: FileBuilt, bodies: dict[tuple[str, GroupVersion], bytes]
    ) -> _File:
        for item in built.documents:
            if item.gzip is not None:
                bodies[name, item.group_version] = item.gzip
        documents = tuple(replace(item, gzip=None) for item in built.documents)
        return _File(fingerprint, documents, built.note, built.holds_manifests)


def _winners(files: Mapping[str, _File]) -> dict[GroupVersion, tuple[str, BuiltDocument]]:
    """One file per group-version: v3 before converted, then the first by name."""
    winners: dict[GroupVersion, tuple[str, BuiltDocument]] = {}
    for name, file in sorted(files.items()):
        for built in file.built:
            rival = winners.get(built.group_version)
            if rival is None or (_is_converted(rival[1]) and not _is_converted(built)):
                winners[built.group_version] = (name, built)
    return winners


def _is_converted(built: BuiltDocument) -> bool:
    return built.offer.provenance is Provenance.CONVERTED


class FolderOrigin:
    """All files of one directory tree."""

    def __init__(
        self,
        backend: Backend,
        folder: DocumentFiles,
        worker: Worker,
        *,
        limits: Limits,
        max_group_versions: int,
    ) -> None:
        self._documents = DirectoryOrigin(
            backend, folder, worker, limits=limits, max_group_versions=max_group_versions
        )
        self._backend = backend
        self._folder = folder
        self._worker = worker
        self._limits = limits
        self._manifests: CRDsOrigin | None = None
        """None until there are any."""
        self._seen = (_NOTHING, _NOTHING)
        """The last documents and manifests, without bytes."""

    async def observe(self, last: Observation) -> Outcome:
        outcome = await self._observe(last)
        if isinstance(outcome, BackendOffers) and any(_is_new(key, outcome, last) for key in outcome.offers):
            # A document and manifests had the same group-version, and precedence has changed: the other's
            # bytes were not kept, so everything is built again.
            await self.close()
            outcome = await self._observe(last)
        return outcome

    async def _observe(self, last: Observation) -> Outcome:
        documents = await self._documents.observe(last)
        if isinstance(documents, Failure):
            return documents
        built = await self._observe_manifests(last)
        if isinstance(built, Failure):
            return built
        if isinstance(documents, UnchangedOffers) and isinstance(built, UnchangedOffers):
            return UnchangedOffers()
        before_documents, before_built = self._seen
        documents = before_documents if isinstance(documents, UnchangedOffers) else documents
        built = before_built if isinstance(built, UnchangedOffers) else built
        self._seen = (replace(documents, bodies={}), replace(built, bodies={}, seconds={}))
        return _join_offers(documents, built)

    async def document(
        self, group_version: GroupVersion, *, hash: Hash, accept_gzip: bool
    ) -> Payload | MovedDocument | Failure:
        """Not called in practice: documents of a directory stay in memory until superseded."""
        return Failure(Cause.NOT_FOUND, "superseded by what the directory holds now")

    async def close(self) -> None:
        await self._documents.close()
        if self._manifests is not None:
            await self._manifests.close()
        self._seen = (_NOTHING, _NOTHING)

    async def _observe_manifests(self, last: Observation) -> Outcome:
        """Skips the worker if there are no manifests now and there were none before."""
        if not self._documents.manifests and not self._seen[1].offers:
            return UnchangedOffers()
        if self._manifests is None:
            from specmux_aggregator.backend_sources.crds import CRDsOrigin
            from specmux_aggregator.backend_sources.manifests import FolderManifests

            manifests = FolderManifests(self._folder, among=lambda: self._documents.manifests)
            self._manifests = CRDsOrigin(self._backend, manifests, self._worker, limits=self._limits)
        return await self._manifests.observe(last)


def _join_offers(documents: BackendOffers, built: BackendOffers) -> BackendOffers:
    outdone = documents.offers.keys() & built.offers.keys()
    return BackendOffers(
        BackendKind.DIRECTORY,
        {**built.offers, **documents.offers},
        {**{key: body for key, body in built.bodies.items() if key not in outdone}, **documents.bodies},
        (
            *documents.notes,
            *built.notes,
            *(
                f"{key}: its document is a file, so its CustomResourceDefinitions are not used"
                for key in outdone
            ),
        ),
        built.seconds,
        {
            **{key: listed for key, listed in built.resources.items() if key not in outdone},
            **documents.resources,
        },
        is_partial=built.is_partial,
    )


def _is_new(key: GroupVersion, joined: BackendOffers, last: Observation) -> bool:
    """Whether neither this check nor the caller has its bytes."""
    held = last.offers.get(key)
    return key not in joined.bodies and (held is None or held.hash != joined.offers[key].hash)
