"""The CustomResourceDefinitions of a cluster, as far as a watch has shown them, and the manifests that
documents are built of.

Of an object only the text is held that documents are made of: the tree of a large one takes many times as
much, and a change of its status or of managed fields is no change. They count in the order in which they were
created, so that of two that collide the later one is left out.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from specmux_aggregator.jobs.crds import ManifestObject
from specmux_aggregator.kubernetes.watch import WatchState
from specmux_aggregator.kubernetes.watch_events import Object, identity_of
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.origins.crds import Unreadable
from specmux_converters.crd import Templates
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion

FIRST_LIST: Final = 90.0
"""Seconds that a check waits for the first list. A watch says sooner that it has none."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What is held of one object."""

    name: str
    identity: tuple[object, object] = field(compare=False)
    """Uid and resourceVersion: of the same definition in another version nothing else need differ."""
    created: str
    is_established: bool
    """Its names were accepted, and an apiserver serves it."""
    served: tuple[GroupVersion, ...]
    """The group-versions that it wants to be part of."""
    withdrawn: tuple[GroupVersion, ...]
    """Those that it names and does not want to be part of."""
    manifest: bytes | None
    """None for one that is nested too deeply."""


def kept(item: Object) -> Definition:
    """What a watch holds of an object."""
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return Definition(
        name=_text(metadata.get("name")),
        identity=identity_of(item),
        created=_text(metadata.get("creationTimestamp")),
        is_established=_is_established(item.get("status")),
        served=tuple(_versions(item.get("spec"), are_served=True)),
        withdrawn=tuple(_versions(item.get("spec"), are_served=False)),
        manifest=_manifest(item, metadata.get("name")),
    )


def definitions(objects: Mapping[str, Definition]) -> tuple[Definition, ...]:
    """In the order in which they count."""
    return tuple(sorted(objects.values(), key=lambda item: (item.created, item.name)))


class WatchedManifests:
    """What a watch saw last. ``take`` and ``fail`` belong to the event loop."""

    def __init__(self, templates: Callable[[], Awaitable[Templates]]) -> None:
        """``templates``: those of the cluster."""
        self._templates = templates
        self._taken: tuple[Definition, ...] = ()
        self._by_name: dict[str, Definition] = {}
        self._digests: dict[str, tuple[Definition, bytes]] = {}
        self._failure: Failure | None = None
        self._known = asyncio.Event()

    def take(self, taken: tuple[Definition, ...]) -> None:
        """These are all there are now."""
        self._taken = taken
        self._failure = None
        self._known.set()

    def fail(self, failure: Failure) -> None:
        """They cannot be had at the moment."""
        self._failure = failure
        self._known.set()

    async def scan(self) -> Mapping[str, bytes] | Failure:
        """The digests of those that are established, in their order, by name."""
        try:
            async with asyncio.timeout(FIRST_LIST):
                await self._known.wait()
        except TimeoutError:
            return Failure(Cause.TIMEOUT, "not listed yet")
        if self._failure is not None:
            return self._failure
        self._by_name = {item.name: item for item in self._taken if item.is_established}
        return await asyncio.to_thread(self._digested, self._by_name)

    async def templates(self) -> Templates:
        return await self._templates()

    def manifest(self, name: str) -> ManifestObject | Unreadable:
        definition, digest = self._digests[name]
        if definition.manifest is None:
            return Unreadable("nested too deeply")
        return ManifestObject(name, digest, definition.manifest)

    def _digested(self, by_name: Mapping[str, Definition]) -> Mapping[str, bytes]:
        # One check of a backend runs at a time, so nobody else touches the digests.
        before, self._digests = self._digests, {}
        for name, item in by_name.items():
            held = before.get(name)
            if held is None or held[0] is not item:
                held = (item, hashlib.sha256(item.manifest or b"").digest())
            self._digests[name] = held
        return {name: digest for name, (_, digest) in self._digests.items()}


class SeenDefinitions:
    """Read only when somebody looks. ``changed`` is told that ``manifests`` has news."""

    def __init__(self, changed: Callable[[], None], templates: Callable[[], Awaitable[Templates]]) -> None:
        self.manifests = WatchedManifests(templates)
        self._changed = changed
        self._taken: Mapping[str, Definition] | None = None
        self._items: tuple[Definition, ...] = ()
        self._named: set[GroupVersion] = set()
        """Every group-version that one ever named."""
        self._failure: Failure | None = None
        self.withdrawn: frozenset[GroupVersion] = frozenset()
        """The group-versions that one named and none wants served now."""
        self.served: frozenset[GroupVersion] = frozenset()
        self.defined: frozenset[GroupVersion] = frozenset()
        """Likewise, and what those want that are not established yet."""

    def take(self, objects: Mapping[str, Definition]) -> None:
        """These are all there are now."""
        self._taken = objects

    def look(self, state: WatchState | None) -> bool:
        """What follows from how the watch is; None: there is none. Whether there are any to build documents
        of."""
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
        """What is wrong with them that no builder sees. ``elsewhere``: what their apiserver does not serve by
        them."""
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
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return any(
        isinstance(condition, dict)
        and condition.get("type") == "Established"
        and condition.get("status") == "True"
        for condition in (conditions if isinstance(conditions, list) else ())
    )


def _versions(spec: Any, *, are_served: bool) -> Iterator[GroupVersion]:
    versions = spec.get("versions") if isinstance(spec, dict) else None
    for version in versions if isinstance(versions, list) else ():
        if isinstance(version, dict) and (version.get("served") is True) == are_served:
            yield GroupVersion(f"apis/{_text(spec.get('group'))}/{_text(version.get('name'))}")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _manifest(item: Object, name: object) -> bytes | None:
    part = {key: item.get(key) for key in ("apiVersion", "kind", "spec")}
    try:
        return orjson.dumps({**part, "metadata": {"name": name}}, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return None
