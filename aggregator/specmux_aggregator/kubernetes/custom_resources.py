"""The CustomResourceDefinitions of a cluster as manifests, as origins/crds.py takes them from a directory.

Of an object only the text is held that documents are made of: the tree of a large one takes many times as
much, and a change of its status or of managed fields is no change. They count in the order in which they were
created, so that of two that collide the later one is left out.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from specmux_aggregator.kubernetes.watch_events import Object
from specmux_aggregator.model.failure import Cause, Failure
from specmux_converters.crd import Templates
from specmux_converters.group_versions import GroupVersion

FIRST_LIST: Final = 90.0
"""Seconds that a check waits for the first list. A watch says sooner that it has none."""

_METADATA: Final = ("name", "uid", "resourceVersion")


@dataclass(frozen=True, slots=True)
class Definition:
    """What is held of one object."""

    name: str
    created: str
    is_established: bool
    """Its names were accepted, and an apiserver serves it."""
    served: tuple[GroupVersion, ...]
    """The group-versions that it wants to be part of."""
    withdrawn: tuple[GroupVersion, ...]
    """Those that it names and does not want to be part of."""
    manifest: bytes | None
    """None for one that is nested too deeply."""


def kept(item: Object) -> Object:
    """What a watch holds of an object; ``definitions`` takes it out again."""
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    definition = Definition(
        name=_text(metadata.get("name")),
        created=_text(metadata.get("creationTimestamp")),
        is_established=_is_established(item.get("status")),
        served=tuple(_versions(item.get("spec"), are_served=True)),
        withdrawn=tuple(_versions(item.get("spec"), are_served=False)),
        manifest=_manifest(item, metadata.get("name")),
    )
    return {"metadata": {key: metadata.get(key) for key in _METADATA}, "definition": definition}


def definitions(objects: Mapping[str, Object]) -> tuple[Definition, ...]:
    """In the order in which they count."""
    found: list[Definition] = [item["definition"] for item in objects.values()]
    return tuple(sorted(found, key=lambda item: (item.created, item.name)))


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
        # The suffix is what a reader of files goes by.
        self._by_name = {f"{item.name}.json": item for item in self._taken if item.is_established}
        return await asyncio.to_thread(self._digested, self._by_name)

    async def templates(self) -> Templates:
        return await self._templates()

    def read(self, name: str) -> bytes:
        manifest = self._by_name[name].manifest
        if manifest is None:
            raise OSError(errno.EINVAL, "nested too deeply")
        return manifest

    def _digested(self, by_name: Mapping[str, Definition]) -> Mapping[str, bytes]:
        # One check of a backend runs at a time, so nobody else touches the digests.
        before, self._digests = self._digests, {}
        for name, item in by_name.items():
            held = before.get(name)
            if held is None or held[0] is not item:
                held = (item, hashlib.sha256(item.manifest or b"").digest())
            self._digests[name] = held
        return {name: digest for name, (_, digest) in self._digests.items()}


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
