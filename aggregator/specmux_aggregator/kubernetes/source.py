"""A cluster as a source of backends: its APIServices and CustomResourceDefinitions, watched forever.

Two watches feed it; events in quick succession are evaluated together. Without permission for one watch, it
runs with the other.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from specmux_aggregator.config.settings import KubernetesSettings
from specmux_aggregator.documents.archive import StateDirectory
from specmux_aggregator.kubernetes.api_client import ApiClient
from specmux_aggregator.kubernetes.api_services import APIService, read_api_services, recall, write_note
from specmux_aggregator.kubernetes.cluster_backends import (
    APISERVER,
    APISERVER_SERVICE,
    cluster_backends,
    list_shadowed,
)
from specmux_aggregator.kubernetes.custom_resources import (
    Definition,
    SeenDefinitions,
    WatchedManifests,
    keep_definition,
)
from specmux_aggregator.kubernetes.endpoint_slices import ServiceName
from specmux_aggregator.kubernetes.service_endpoints import ServiceEndpoints
from specmux_aggregator.kubernetes.shared_crd_parts import ClusterTemplates
from specmux_aggregator.kubernetes.watch import Timing, Watch, WatchPhase, WatchState
from specmux_aggregator.kubernetes.watch_events import Object
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import OUT_OF_REACH
from specmux_aggregator.model.snapshot import Snapshot
from specmux_aggregator.tasks import Coalescer
from specmux_converters.counted_nouns import first_of
from specmux_converters.group_versions import GroupVersion


class SeenServices:
    """Evaluated only on ``look``. ``note`` receives the input of ``recall`` for the next start."""

    def __init__(self, note: Callable[[bytes], None]) -> None:
        self._note = note
        self._noted: bytes | None = None
        self._taken: Mapping[str, Object] | None = None
        self._read: Mapping[str, Object] | None = None
        self.items: tuple[APIService, ...] | None = None
        """None: unknown yet."""
        self.problems: tuple[str, ...] = ()
        self._named: frozenset[GroupVersion] = frozenset()
        """Every group-version that an APIService of an extension apiserver ever named."""
        self.withdrawn: frozenset[GroupVersion] = frozenset()
        """Group-versions that no APIService names any more. Not the apiserver's own: of several, one that has
        another release deletes the APIServices of all that it does not serve itself, while others serve it.
        Their roots say when the last has lost it."""

    def recall(self, before: bytes) -> None:
        """Start with the note of an earlier run."""
        self._noted = before
        self.items, _ = read_api_services(recall(before))

    def take(self, objects: Mapping[str, Object]) -> None:
        """Set the complete list of objects."""
        self._taken = objects

    def look(self, state: WatchState | None) -> None:
        """Evaluate the state of the watch; None: there is none."""
        if state is None or state.phase.is_refusal:
            # Parse them again once they are listed again, changed or not.
            self.items, self.problems, self._read = (), (), None
            self.withdrawn = frozenset()
        elif self._taken is not None and self._taken is not self._read:
            self._read = self._taken
            self.items, problems = read_api_services(self._taken.values())
            named = list_shadowed(self.items)
            self._named |= {item.group_version for item in self.items if item.service is not None}
            self.withdrawn = self._named - named
            note = write_note(self._taken.values())
            if note != self._noted:
                self._noted = note
                self._note(note)
            for problem in problems:
                if problem not in self.problems:
                    logger.warning("%s", problem)
            self.problems = problems
        elif self.items is None and state.phase is not WatchPhase.PENDING:
            self.items = ()


logger = logging.getLogger(__name__)

API_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

GATHER: Final = 0.05
"""Seconds between evaluations: the first event is evaluated at once, those that follow it together."""

PROBLEMS_NAMED: Final = 50
"""Problems of one cluster that are named; further ones are counted."""


class ClusterSource:
    """Follows one cluster until cancelled.

    ``find`` receives the backends, ``changed`` news of definitions, ``wake`` backends that may answer again.
    ``templates``: for documents of definitions. With ``notes`` of an earlier run the services are known
    before the cluster answers.
    """

    def __init__(
        self,
        client: ApiClient,
        settings: KubernetesSettings,
        *,
        find: Callable[[tuple[Backend, ...]], None],
        changed: Callable[[], None],
        templates: ClusterTemplates,
        wake: Callable[[BackendName], None],
        notes: StateDirectory | None,
        timing: Timing,
    ) -> None:
        self.server = client.server
        self._settings = settings
        self._find = find
        self._wake = wake
        self._was_unavailable: Mapping[BackendName, bool] = {}
        self._was_failing = False
        self._is_apiserver_away = False
        self._is_refused = False
        """Whether the apiserver does not take our credentials."""
        self._notes = notes
        self._templates = templates
        self._services = SeenServices(self._note)
        self._definitions = SeenDefinitions(changed, templates.current)
        self._news = Coalescer(
            self._look, logger=logger, failure="a cluster could not be looked at", pause=GATHER
        )
        self._client = client
        self._services_watch = Watch(
            self._client,
            API_SERVICES,
            on_change=self._take_services,
            on_failure=self._news.ask,
            timing=timing,
        )
        self._definitions_watch = Watch(
            self._client,
            DEFINITIONS,
            on_change=self._take_definitions,
            on_failure=self._news.ask,
            keep=keep_definition,
            timing=timing,
        )
        self._endpoints = (
            ServiceEndpoints(self._client, changed=self._news.ask, timing=timing)
            if settings.reads_endpoint_slices
            else None
        )
        self.pending: tuple[str, ...] = tuple(name for name, _ in self._watches())
        """The watches of which nothing is known yet, not even a failure."""

    async def run(self) -> None:
        """Follow the cluster forever."""
        recalled = None if self._notes is None else await self._notes.recall(self.server, API_SERVICES)
        if recalled is not None and self._settings.api_services:
            self._services.recall(recalled)
            for _, watch in self._watches():
                watch.expect()
        await self._look()
        try:
            async with asyncio.TaskGroup() as tasks:
                for _, watch in self._watches():
                    tasks.create_task(watch.run())
        finally:
            await self._news.close()
            if self._endpoints is not None:
                await self._endpoints.close()
            await self._templates.close()
            await self._client.close()

    def follow(self, snapshot: Snapshot) -> None:
        """Note a new Snapshot: watches of an apiserver that is unreachable, or refuses our credentials, are
        checked."""
        observation = snapshot.observations.get(APISERVER)
        failure = None if observation is None else observation.failure
        was_away = self._is_apiserver_away
        self._is_apiserver_away = failure is not None and failure.cause in OUT_OF_REACH
        if self._is_apiserver_away and not was_away:
            for _, watch in self._watches():
                watch.doubt()
        was_refused = self._is_refused
        self._is_refused = failure is not None and failure.status == 401
        if self._is_refused and not was_refused:
            for _, watch in self._watches():
                watch.doubt(lists=True)

    @property
    def manifests(self) -> WatchedManifests:
        """The manifests of the definitions."""
        return self._definitions.manifests

    @property
    def release(self) -> str | None:
        """That the cluster's own documents tell, as "v1.34"."""
        return self._templates.release

    @property
    def watches(self) -> Mapping[str, WatchState]:
        """The state of each watch, by the name of its resource."""
        return {name: watch.state for name, watch in self._watches()}

    @property
    def unavailable(self) -> Mapping[BackendName, bool]:
        """Whether the cluster reports each extension apiserver as unavailable."""
        return {
            BackendName(item.name): not item.available.is_true
            for item in self._services.items or ()
            if item.service is not None
        }

    @property
    def problems(self) -> tuple[str, ...]:
        """Messages about parts of the cluster that cannot be used."""
        elsewhere = list_shadowed(self._services.items or ())
        found = (*self._services.problems, *self._definitions.problems(elsewhere))
        return tuple(first_of(found, PROBLEMS_NAMED, "problems"))

    def status(self) -> dict[str, Any]:
        """The part of ``/status``."""
        return {
            "server": self.server.url,
            "watches": {name: _show_watch(state) for name, state in self._shown_watches()},
            "unavailable": [
                {"name": item.name, "reason": item.available.reason, "message": item.available.message}
                for item in self._services.items or ()
                if item.service is not None and not item.available.is_true
            ],
            "problems": list(self.problems),
        }

    def _watches(self) -> Iterator[tuple[str, Watch]]:
        if self._settings.api_services:
            yield "apiservices", self._services_watch
        if self._settings.crds:
            yield "customresourcedefinitions", self._definitions_watch

    def _shown_watches(self) -> Iterator[tuple[str, WatchState]]:
        yield from self.watches.items()
        endpoints = None if self._endpoints is None else self._endpoints.state
        if endpoints is not None:
            yield "endpointslices", endpoints

    def _followed_services(self) -> Iterator[ServiceName]:
        """The Services behind backends."""
        if self._settings.apiserver:
            yield APISERVER_SERVICE
        for item in self._services.items or ():
            if item.service is not None:
                yield item.service.namespace, item.service.name

    def _note(self, services: bytes) -> None:
        if self._notes is not None:
            self._notes.note(self.server, API_SERVICES, services)

    def _take_services(self, objects: Mapping[str, Object]) -> None:
        self._services.take(objects)
        self._news.ask()

    def _take_definitions(self, objects: Mapping[str, Definition]) -> None:
        self._definitions.take(objects)
        self._news.ask()

    async def _look(self) -> None:
        """Evaluate what the watches have seen."""
        states = self.watches
        if self._endpoints is not None:
            await self._endpoints.follow(self._followed_services())
        self._services.look(states.get("apiservices"))
        is_custom = self._definitions.look(states.get("customresourcedefinitions"))
        self._find(
            cluster_backends(
                self.server,
                self._services.items or (),
                settings=self._settings,
                # Only once it is known which group-versions belong to others.
                has_custom_resources=is_custom and self._services.items is not None,
                withdrawn=self._list_withdrawn(is_custom=is_custom),
                defined=self._definitions.defined if is_custom else frozenset(),
                servers={} if self._endpoints is None else self._endpoints.servers,
            )
        )
        self.pending = tuple(name for name, state in states.items() if state.phase is WatchPhase.PENDING)
        self._wake_recovered(states)

    def _wake_recovered(self, states: Mapping[str, WatchState]) -> None:
        """Retry failing backends that the cluster reports as recovered: their pauses grow."""
        unavailable = self.unavailable
        for name, is_unavailable in self._was_unavailable.items():
            if is_unavailable and not unavailable.get(name, True):
                self._wake(name)
        self._was_unavailable = unavailable
        is_failing = any(state.phase is WatchPhase.FAILING for state in states.values())
        if self._was_failing and not is_failing:
            self._wake(APISERVER)
        self._was_failing = is_failing

    def _list_withdrawn(self, *, is_custom: bool) -> frozenset[GroupVersion]:
        """Group-versions that were served once and are not intended any more."""
        if not is_custom:
            return self._services.withdrawn
        return self._definitions.withdrawn | (self._services.withdrawn - self._definitions.served)


def _show_watch(state: WatchState) -> dict[str, Any]:
    failure = state.failure
    return {
        "state": state.phase.value,
        "error": None if failure is None else {"cause": failure.cause.value, "detail": failure.detail},
        "objects": state.objects,
        "heardAgeSeconds": None if state.heard_at is None else round(time.monotonic() - state.heard_at, 3),
        "lists": state.lists,
        "restarts": state.restarts,
    }
