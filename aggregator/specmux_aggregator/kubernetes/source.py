"""A cluster as a source of backends: its APIServices and CustomResourceDefinitions, followed for ever.

Two watches feed it. Events that come close together are looked at together. Without the right to watch one of
them, it runs without that one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from specmux_aggregator.identities import Identities
from specmux_aggregator.kubernetes.api_client import ApiClient
from specmux_aggregator.kubernetes.api_services import APIService, noted, read_api_services, recall
from specmux_aggregator.kubernetes.cluster_backends import Reach, cluster_backends, shadowed
from specmux_aggregator.kubernetes.custom_resources import Definition, WatchedManifests, definitions, kept
from specmux_aggregator.kubernetes.watch import Phase, Timing, Watch, WatchState
from specmux_aggregator.kubernetes.watch_events import Object
from specmux_aggregator.model import Backend, BackendName, Failure
from specmux_aggregator.settings import Kubernetes, Polling
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion

logger = logging.getLogger(__name__)

API_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

GATHER: Final = 0.05
"""Seconds between looks. The first event is looked at at once, those that follow it together."""

PROBLEMS_NAMED: Final = 50
"""Problems of one cluster that are named; more are counted."""

REFUSED: Final = (Phase.FORBIDDEN, Phase.ABSENT)
"""The cluster will not show it: it is done without."""


class ClusterSource:
    """Follows one cluster until it is cancelled.

    ``find`` is told which backends there are, ``changed`` that there is news of the definitions, and ``note``
    what to hand to ``recall`` at the next start.
    """

    def __init__(
        self,
        server: Backend,
        settings: Kubernetes,
        *,
        polling: Polling,
        identities: Identities,
        find: Callable[[tuple[Backend, ...]], None],
        changed: Callable[[], None],
        note: Callable[[bytes], None],
        timing: Timing,
    ) -> None:
        self.server = server
        self.manifests = WatchedManifests()
        self._settings = settings
        self._find = find
        self._changed = changed
        self._note = note
        self._news = asyncio.Event()
        self._client = ApiClient(server, polling=polling, identities=identities)
        self._reach = Reach(
            url=settings.service_url,
            token_file=settings.service_token_file,
            cert_file=settings.service_cert_file,
            key_file=settings.service_key_file,
            remote_user=settings.service_remote_user,
        )
        self._services_watch = Watch(
            self._client,
            API_SERVICES,
            on_change=self._take_services,
            on_failure=self._news.set,
            timing=timing,
        )
        self._definitions_watch = Watch(
            self._client,
            DEFINITIONS,
            on_change=self._take_definitions,
            on_failure=self._news.set,
            keep=kept,
            timing=timing,
        )
        self._objects: Mapping[str, Object] | None = None
        self._read: Mapping[str, Object] | None = None
        self._noted: bytes | None = None
        self._definition_objects: Mapping[str, Object] | None = None
        self._definitions: tuple[Definition, ...] = ()
        self._defined: set[GroupVersion] = set()
        """Every group-version that a definition ever named."""
        self._withdrawn: frozenset[GroupVersion] = frozenset()
        """Those of them that none wants served now."""
        self._failure: Failure | None = None
        self._services: tuple[APIService, ...] | None = None
        """None: not known yet."""
        self._problems: tuple[str, ...] = ()
        self.pending: tuple[str, ...] = tuple(name for name, _ in self._watches())
        """The watches of which nothing is known yet, not even a failure."""

    async def run(self, recalled: bytes | None) -> None:
        """Follow the cluster for ever. ``recalled``: what was noted by an earlier run."""
        if recalled is not None and self._settings.api_services:
            self._noted = recalled
            self._services, _ = read_api_services(recall(recalled))
        self._look()
        try:
            async with asyncio.TaskGroup() as tasks:
                for _, watch in self._watches():
                    tasks.create_task(watch.run())
                tasks.create_task(self._follow())
        finally:
            await self._client.close()

    @property
    def watches(self) -> Mapping[str, WatchState]:
        """How each watch is, by the name of its resource."""
        return {name: watch.state for name, watch in self._watches()}

    @property
    def unavailable(self) -> Mapping[BackendName, bool]:
        """Of each extension apiserver, whether its cluster says that it is not available."""
        return {
            BackendName(item.name): not item.available.is_true
            for item in self._services or ()
            if item.service is not None
        }

    @property
    def problems(self) -> tuple[str, ...]:
        """What of the cluster cannot be used, in words."""
        found = (*self._problems, *self._unpublished())
        more = len(found) - PROBLEMS_NAMED
        return (*found[:PROBLEMS_NAMED], f"and {more} more problems") if more > 0 else found

    def status(self) -> dict[str, Any]:
        """For ``/status``."""
        return {
            "server": self.server.url,
            "watches": {name: _shown(state) for name, state in self.watches.items()},
            "unavailable": [
                {"name": item.name, "reason": item.available.reason, "message": item.available.message}
                for item in self._services or ()
                if item.service is not None and not item.available.is_true
            ],
            "problems": list(self.problems),
        }

    def _watches(self) -> Iterator[tuple[str, Watch]]:
        if self._settings.api_services:
            yield "apiservices", self._services_watch
        if self._settings.crds:
            yield "customresourcedefinitions", self._definitions_watch

    def _take_services(self, objects: Mapping[str, Object]) -> None:
        self._objects = objects
        self._news.set()

    def _take_definitions(self, objects: Mapping[str, Object]) -> None:
        self._definition_objects = objects
        self._news.set()

    async def _follow(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            self._look()
            await asyncio.sleep(GATHER)

    def _look(self) -> None:
        """What follows from what the watches have seen."""
        states = self.watches
        self._read_services(states.get("apiservices"))
        is_custom = self._read_definitions(states.get("customresourcedefinitions"))
        self._find(
            cluster_backends(
                self.server,
                self._services or (),
                reach=self._reach,
                has_apiserver=self._settings.apiserver,
                # Not before it is known which group-versions are not theirs.
                has_custom_resources=is_custom and self._services is not None,
                withdrawn=self._withdrawn if is_custom else frozenset(),
            )
        )
        self.pending = tuple(name for name, state in states.items() if state.phase is Phase.PENDING)

    def _read_services(self, state: WatchState | None) -> None:
        if state is None or state.phase in REFUSED:
            # Read again once they are shown again, changed or not.
            self._services, self._problems, self._read = (), (), None
        elif self._objects is not None and self._objects is not self._read:
            self._read = self._objects
            self._services, problems = read_api_services(self._objects.values())
            note = noted(self._objects.values())
            if note != self._noted:
                self._noted = note
                self._note(note)
            for problem in problems:
                if problem not in self._problems:
                    logger.warning("%s", problem)
            self._problems = problems
        elif self._services is None and state.phase is not Phase.PENDING:
            self._services = ()

    def _read_definitions(self, state: WatchState | None) -> bool:
        """Whether there are any to build documents of."""
        if state is None or state.phase in REFUSED:
            return False
        objects, self._definition_objects = self._definition_objects, None
        if objects is not None:
            self._definitions = definitions(objects)
            self._withdraw()
        if objects is not None or (state.failure is None and self._failure is not None):
            self.manifests.take(self._definitions)
            self._changed()
        elif state.failure is not None and state.failure != self._failure:
            self.manifests.fail(state.failure)
            self._changed()
        self._failure = state.failure
        return True

    def _withdraw(self) -> None:
        served = {key for item in self._definitions if item.is_established for key in item.served}
        self._defined |= served.union(*(item.withdrawn for item in self._definitions))
        self._withdrawn = frozenset(self._defined - served)

    def _unpublished(self) -> Iterator[str]:
        """What is wrong with definitions that no builder sees."""
        elsewhere = shadowed(self._services or ())
        for item in self._definitions:
            if not item.is_established:
                yield f"CustomResourceDefinition {cut(item.name)}: not Established"
                continue
            for group_version in sorted(elsewhere.intersection(item.served)):
                yield f"CustomResourceDefinition {cut(item.name)}: {group_version} is served from elsewhere"


def _shown(state: WatchState) -> dict[str, Any]:
    failure = state.failure
    return {
        "state": state.phase.value,
        "error": None if failure is None else {"cause": failure.cause.value, "detail": failure.detail},
        "objects": state.objects,
        "heardAgeSeconds": None if state.heard_at is None else round(time.monotonic() - state.heard_at, 3),
        "lists": state.lists,
        "restarts": state.restarts,
    }
