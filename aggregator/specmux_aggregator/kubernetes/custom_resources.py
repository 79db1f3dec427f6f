"""The CustomResourceDefinitions of a cluster as seen by a watch, and the manifests from which documents are
built.

Of an object only the text relevant for documents is kept: the parsed tree takes many times as much memory,
and changes of status or managed fields are irrelevant. Definitions are ordered by creation, so the later of
two conflicting ones is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from specmux_aggregator.backend_sources.manifests import Unreadable
from specmux_aggregator.kubernetes.watch import WatchState
from specmux_aggregator.kubernetes.watch_events import Object, identity_of
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.workers.built import ManifestObject, manifest_object
from specmux_converters.crd import Templates
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_values import array, mapping, text

FIRST_LIST: Final = 90.0
"""Seconds for which a check waits for the first list. A watch reports earlier if there is none."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The kept part of one object."""

    name: str
    identity: tuple[object, object] = field(compare=False)
    """Uid and resourceVersion: another version of the definition may differ in nothing else."""
    created: str
    is_established: bool
    """Whether its names were accepted, so an apiserver serves it."""
    served: tuple[GroupVersion, ...]
    """The group-versions that it serves."""
    withdrawn: tuple[GroupVersion, ...]
    """The group-versions that it names but does not serve."""
    manifest: ManifestObject | None
    """None if it is nested too deeply."""


def keep_definition(item: Object) -> Definition:
    """The part of an object that a watch keeps."""
    metadata = mapping(item.get("metadata"))
    return Definition(
        name=text(metadata.get("name")),
        identity=identity_of(item),
        created=text(metadata.get("creationTimestamp")),
        is_established=_is_established(item.get("status")),
        served=tuple(_versions(item.get("spec"), are_served=True)),
        withdrawn=tuple(_versions(item.get("spec"), are_served=False)),
        manifest=_manifest(item, metadata.get("name")),
    )


def definitions(objects: Mapping[str, Definition]) -> tuple[Definition, ...]:
    """In order of precedence."""
    return tuple(sorted(objects.values(), key=lambda item: (item.created, item.name)))


class WatchedManifests:
    """The objects that a watch saw last. ``take`` and ``fail`` must be called on the event loop."""

    def __init__(self, templates: Callable[[], Awaitable[Templates]]) -> None:
        """``templates``: those of the cluster."""
        self._templates = templates
        self._taken: tuple[Definition, ...] = ()
        self._by_name: dict[str, Definition] = {}
        self._failure: Failure | None = None
        self._known = asyncio.Event()

    def take(self, taken: tuple[Definition, ...]) -> None:
        """Set the complete list of definitions."""
        self._taken = taken
        self._failure = None
        self._known.set()

    def fail(self, failure: Failure) -> None:
        """Note that the definitions are unavailable at the moment."""
        self._failure = failure
        self._known.set()

    async def scan(self) -> Mapping[str, bytes | None] | Failure:
        """Digests of the established definitions by name, in order."""
        try:
            async with asyncio.timeout(FIRST_LIST):
                await self._known.wait()
        except TimeoutError:
            return Failure(Cause.TIMEOUT, "not listed yet")
        if self._failure is not None:
            return self._failure
        self._by_name = {item.name: item for item in self._taken if item.is_established}
        return {
            name: None if item.manifest is None else item.manifest.digest
            for name, item in self._by_name.items()
        }

    async def templates(self) -> Templates:
        return await self._templates()

    def manifest(self, name: str) -> ManifestObject | Unreadable:
        return self._by_name[name].manifest or Unreadable("nested too deeply")


class SeenDefinitions:
    """Evaluated only on ``look``. ``changed`` is called when ``manifests`` has news."""

    def __init__(self, changed: Callable[[], None], templates: Callable[[], Awaitable[Templates]]) -> None:
        self.manifests = WatchedManifests(templates)
        self._changed = changed
        self._taken: Mapping[str, Definition] | None = None
        self._items: tuple[Definition, ...] = ()
        self._named: set[GroupVersion] = set()
        """Every group-version that a definition ever named."""
        self._failure: Failure | None = None
        self.withdrawn: frozenset[GroupVersion] = frozenset()
        """Group-versions that were named earlier and that no definition serves now."""
        self.served: frozenset[GroupVersion] = frozenset()
        self.defined: frozenset[GroupVersion] = frozenset()
        """The others, and those of definitions that are not established yet."""

    def take(self, objects: Mapping[str, Definition]) -> None:
        """Set the complete list of objects."""
        self._taken = objects

    def look(self, state: WatchState | None) -> bool:
        """Evaluate the state of the watch; None: there is none. Returns whether there are definitions to
        build documents from."""
        if state is None or state.phase.is_refusal:
            return False
        objects, self._taken = self._taken, None
        if objects is not None:
            self._items = definitions(objects)
            self._withdraw()
        if objects is not None or (state.failure is None and self._failure is not None):
            self.manifests.take(self._items)
            self._changed()
        elif state.failure is not None and state.failure != self._failure:
            self.manifests.fail(state.failure)
            self._changed()
        self._failure = state.failure
        return True

    def problems(self, elsewhere: frozenset[GroupVersion]) -> Iterator[str]:
        """Problems of definitions that builders do not see. ``elsewhere``: what the apiserver serves by other
        means."""
        for item in self._items:
            if not item.is_established:
                yield f"CustomResourceDefinition {cut(item.name)}: not Established"
                continue
            for group_version in sorted(elsewhere.intersection(item.served)):
                yield f"CustomResourceDefinition {cut(item.name)}: {group_version} is served from elsewhere"

    def _withdraw(self) -> None:
        served = {key for item in self._items if item.is_established for key in item.served}
        self._named |= served.union(*(item.withdrawn for item in self._items))
        self.withdrawn = frozenset(self._named - served)
        self.served = frozenset(served)
        self.defined = self.served.union(*(item.served for item in self._items))


def _is_established(status: object) -> bool:
    return any(
        isinstance(condition, dict)
        and condition.get("type") == "Established"
        and condition.get("status") == "True"
        for condition in array(mapping(status).get("conditions"))
    )


def _versions(spec: Any, *, are_served: bool) -> Iterator[GroupVersion]:
    for version in array(mapping(spec).get("versions")):
        if isinstance(version, dict) and (version.get("served") is True) == are_served:
            yield GroupVersion(f"apis/{text(spec.get('group'))}/{text(version.get('name'))}")


def _manifest(item: Object, name: object) -> ManifestObject | None:
    part = {key: item.get(key) for key in ("apiVersion", "kind", "spec")}
    return manifest_object(text(name), {**part, "metadata": {"name": name}})
