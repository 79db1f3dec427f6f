"""A directory with any content as origin: documents as they are, Swagger 2.0 converted, and
CustomResourceDefinitions built together.

A document precedes one built from manifests. Invariant: every offer was delivered with its bytes, or the
caller has them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from specmux_aggregator.backend_sources.directory import DirectoryOrigin
from specmux_aggregator.backend_sources.files import DocumentFiles
from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome, UnchangedOffers
from specmux_aggregator.model.backend import Backend, BackendKind
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Observation
from specmux_aggregator.upstream.client import MovedDocument, Payload
from specmux_aggregator.workers.worker import Worker
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion

if TYPE_CHECKING:  # imported where there are manifests
    from specmux_aggregator.backend_sources.crds import CRDsOrigin

_NOTHING: Final = BackendOffers(BackendKind.DIRECTORY, {})


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

            manifests = FolderManifests(self._folder, among=self._documents)
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
