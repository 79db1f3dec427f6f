"""CustomResourceDefinitions as origin: published as an apiserver would publish them.

They come from the files of a directory or from a cluster. Every file is examined, whatever its name and
folder; those with other content are skipped. An invalid manifest is a note, and the rest of its group-version
remains.

How it works: of every manifest the compressed text is kept here, by API group. A group is built by itself,
and only when its manifests change. Groups go to the worker in parts of PART_BYTES, each with the worker's
whole time limit, and a result is kept as soon as it is there: a check that has worked for SHARE seconds
returns what it has, and the next one goes on. So neither a slow machine nor thousands of definitions lose
anything, and no process holds more than a part.

What must never happen: that a group costs another one. When the worker fails at a part, the part is halved
until the group is found; its documents stay as they were, and it is tried again after a growing pause, or
when its manifests change.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from specmux_aggregator.backend_sources.manifests import Manifests, Unreadable
from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome, UnchangedOffers
from specmux_aggregator.errors import NoWorker, WorkerFailed
from specmux_aggregator.model.backend import Backend, BackendKind
from specmux_aggregator.model.failure import Cause, Failure, build_failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.mounts import NamedFunction
from specmux_aggregator.upstream.client import MovedDocument, Payload
from specmux_aggregator.workers.built import GroupBuilt, ManifestFile, ManifestObject
from specmux_aggregator.workers.worker import Worker
from specmux_converters.counted_nouns import first_of
from specmux_converters.crd import BUNDLED, Templates
from specmux_converters.document import Limits as DocumentLimits
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.resources import Resources

if TYPE_CHECKING:  # imported in the worker process alone
    from specmux_aggregator.workers.crds import read_manifests
    from specmux_aggregator.workers.documents import build_manifests
else:
    build_manifests = NamedFunction("specmux_aggregator.workers.documents:build_manifests")
    read_manifests = NamedFunction("specmux_aggregator.workers.crds:read_manifests")


PART_BYTES: Final = 2 * 1024 * 1024
"""JSON of the manifests of one job: about a second of work."""

SHARE: Final = 2.0
"""Seconds after which a check returns what it has built."""

PROBLEMS_NAMED: Final = 50
"""Problems of one backend that are named; further ones are counted."""

PAUSE_MIN: Final = 10.0
PAUSE_MAX: Final = 600.0
"""Seconds until a group is tried again at which the worker failed, doubled each time."""


_UNREAD: Final = "not read"
"""The fingerprint of a manifest that is read again by the next check."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A file or an object as last read."""

    fingerprint: Hashable
    manifests: tuple[ManifestObject, ...]
    notes: tuple[str, ...] = ()


_GroupKey: TypeAlias = tuple[Hashable, ...]
"""Equal if building a group again would give the same result."""


@dataclass(frozen=True, slots=True)
class _Group:
    """The last build of one API group."""

    key: _GroupKey
    offers: Mapping[GroupVersion, Offer]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _FailedGroup:
    """A group at which the worker failed, and the monotonic seconds from which it is tried again."""

    key: _GroupKey
    reason: str
    pause: float
    until: float


@dataclass(slots=True)
class _Delivery:
    """The results of one check."""

    bodies: dict[GroupVersion, bytes] = field(default_factory=dict)
    seconds: dict[GroupVersion, float] = field(default_factory=dict)
    resources: dict[GroupVersion, Resources] = field(default_factory=dict)


_Groups: TypeAlias = Mapping[str, Sequence[ManifestObject]]


class CRDsOrigin:
    """The manifests of one backend."""

    def __init__(
        self, backend: Backend, manifests: Manifests, worker: Worker, *, limits: DocumentLimits
    ) -> None:
        self._backend = backend
        self._manifests = manifests
        self._worker = worker
        self._limits = limits
        self._sources: dict[str, _Source] = {}
        self._groups: dict[str, _Group] = {}
        self._failed: dict[str, _FailedGroup] = {}
        self._templates = BUNDLED
        self._is_done = False
        """Whether the last check left no group to be built."""

    async def observe(self, last: Observation) -> Outcome:
        began = time.monotonic()
        found = await self._manifests.scan()
        if isinstance(found, Failure):
            return found
        templates = await self._manifests.templates()
        if self._is_done and self._is_known(found, templates) and last.failure is None and last.attempted:
            return UnchangedOffers()
        self._templates, self._is_done = templates, False
        delivery = _Delivery()
        try:
            await self._read(found)
            groups = self._group_manifests(found)
            for held in (self._groups, self._failed):
                for gone in held.keys() - groups.keys():
                    del held[gone]
            due = {group: items for group, items in groups.items() if self._is_due(group, items, last)}
            for number, part in enumerate(_parts(due)):
                if number and time.monotonic() - began > SHARE:
                    break
                await self._build(part, last, delivery)
                for group in part:
                    del due[group]
        except NoWorker as error:
            return build_failure(error)
        if self._failed and not due and not self._groups:
            return Failure(Cause.BUILD_FAILED, next(iter(self._failed.values())).reason)
        self._is_done = not due
        return self._outcome(groups, due, last, delivery)

    async def document(
        self, group_version: GroupVersion, *, hash: Hash, accept_gzip: bool
    ) -> Payload | MovedDocument | Failure:
        """Not called in practice: documents of manifests stay in memory until superseded."""
        return Failure(Cause.NOT_FOUND, "superseded by what the manifests say now")

    async def close(self) -> None:
        self._sources.clear()
        self._groups.clear()
        self._failed.clear()
        self._is_done = False

    def _is_known(self, found: Mapping[str, Hashable], templates: Templates) -> bool:
        known = {name: source.fingerprint for name, source in self._sources.items()}
        is_pausing = all(failed.until > time.monotonic() for failed in self._failed.values())
        return found == known and templates == self._templates and is_pausing

    async def _read(self, found: Mapping[str, Hashable]) -> None:
        """Read what is new. A file that became faulty keeps its last content. Raises NoWorker."""
        for name in self._sources.keys() - found.keys():
            del self._sources[name]
        for name, now in found.items():
            if name not in self._sources or self._sources[name].fingerprint != now:
                self._sources[name] = await self._source(name, now)
        self._sources = {name: self._sources[name] for name in found}

    async def _source(self, name: str, fingerprint: Hashable) -> _Source:
        last = self._sources.get(name)
        kept = last.manifests if last else ()
        manifest = await asyncio.to_thread(self._manifests.manifest, name)
        match manifest:
            case ManifestObject():
                return _Source(fingerprint, (manifest,))
            case Unreadable(reason):
                return _Source(_UNREAD, (), (f"{cut(name)}: unreadable: {reason}",))
            case ManifestFile(_, data):
                try:
                    read = await self._worker.run(read_manifests, name, data, limits=self._limits)
                except NoWorker:
                    raise
                except WorkerFailed as error:
                    return _Source(_UNREAD, kept, (f"{cut(name)}: {error}",))
                notes = tuple(f"{cut(name)}: {note}" for note in (read.fault, read.lost) if note is not None)
                return _Source(fingerprint, kept if read.fault is not None else read.manifests, notes)

    def _group_manifests(self, found: Mapping[str, Hashable]) -> dict[str, list[ManifestObject]]:
        """The manifests of each API group, in order of precedence."""
        groups: dict[str, list[ManifestObject]] = {}
        for name in found:
            for manifest in self._sources[name].manifests:
                groups.setdefault(manifest.group, []).append(manifest)
        return dict(sorted(groups.items()))

    def _key(self, manifests: Iterable[ManifestObject]) -> _GroupKey:
        return (self._templates.digest, *(manifest.digest for manifest in manifests))

    def _is_due(self, group: str, manifests: Sequence[ManifestObject], last: Observation) -> bool:
        key, failed, built = self._key(manifests), self._failed.get(group), self._groups.get(group)
        if failed is not None and failed.key == key:
            return failed.until <= time.monotonic()
        return built is None or built.key != key or not _holds(last, built)

    async def _build(self, groups: _Groups, last: Observation, delivery: _Delivery) -> None:
        """Build whole groups, and note those at which the worker fails. Raises NoWorker."""
        # A document restored from an earlier run must be delivered once by this one.
        known = {key for group in groups if group in self._groups for key in self._groups[group].offers}
        try:
            built = await self._worker.build(
                build_manifests,
                self._backend.name,
                groups,
                owned=self._backend.group_versions,
                held={key: last.offers[key].hash for key in known & last.offers.keys()},
                limits=self._limits,
                templates=self._templates,
            )
        except NoWorker:
            raise
        except WorkerFailed as error:
            if len(groups) == 1:
                self._fail(*groups.items(), reason=str(error))
                return
            names = [*groups]
            for half in (names[: len(names) // 2], names[len(names) // 2 :]):
                await self._build({name: groups[name] for name in half}, last, delivery)
            return
        for each in built:
            self._keep(each, self._key(groups[each.group]), delivery)

    def _keep(self, built: GroupBuilt, key: _GroupKey, delivery: _Delivery) -> None:
        offers = {document.group_version: document.offer for document in built.documents}
        self._groups[built.group] = _Group(key, offers, built.problems)
        self._failed.pop(built.group, None)
        for document in built.documents:
            if document.gzip is not None:
                delivery.bodies[document.group_version] = document.gzip
        delivery.seconds.update(built.seconds)
        delivery.resources.update(built.resources)

    def _fail(self, group: tuple[str, Sequence[ManifestObject]], *, reason: str) -> None:
        name, manifests = group
        last = self._failed.get(name)
        pause = PAUSE_MIN if last is None else min(2 * last.pause, PAUSE_MAX)
        self._failed[name] = _FailedGroup(self._key(manifests), reason, pause, time.monotonic() + pause)

    def _outcome(self, groups: _Groups, due: _Groups, last: Observation, delivery: _Delivery) -> Outcome:
        offers: dict[GroupVersion, Offer] = {}
        waiting = {*due, *self._failed}
        for key, offer in last.offers.items():
            parts = split(key)
            if offer.provenance is Provenance.CRD and parts is not None and parts[0] in waiting:
                offers[key] = offer
        notes = [note for source in self._sources.values() for note in source.notes]
        for group in groups:
            failed, built = self._failed.get(group), self._groups.get(group)
            if failed is not None:
                notes.append(f"{cut(group)}: not built: {failed.reason}")
            elif built is not None and group not in due:
                offers |= built.offers
                notes += built.problems
        resources = {key: listed for key, listed in last.resources.items() if key in offers}
        return BackendOffers(
            BackendKind.CRDS,
            offers,
            delivery.bodies,
            tuple(first_of(notes, PROBLEMS_NAMED, "problems")),
            delivery.seconds,
            resources | delivery.resources,
            is_partial=bool(due),
        )


def _parts(groups: _Groups) -> Iterator[dict[str, Sequence[ManifestObject]]]:
    """Groups of at most PART_BYTES together; a larger one alone."""
    part: dict[str, Sequence[ManifestObject]] = {}
    size = 0
    for group, manifests in [*groups.items()]:
        more = sum(manifest.size for manifest in manifests)
        if part and size + more > PART_BYTES:
            yield part
            part, size = {}, 0
        part[group] = manifests
        size += more
    if part:
        yield part


def _holds(last: Observation, group: _Group) -> bool:
    """Whether the caller has every document of the group."""
    return all(
        (held := last.offers.get(key)) is not None and held.hash == offer.hash
        for key, offer in group.offers.items()
    )
