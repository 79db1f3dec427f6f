"""The CustomResourceDefinitions of a cluster as manifests, as origins/crds.py takes them from a directory.

Only what documents are made of is passed on: a change of status or of managed fields is none. They count in
the order in which they were created, so that of two that collide the later one is left out.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from specmux_aggregator.model import Cause, Failure
from specmux_converters.group_versions import GroupVersion

CustomResource = Mapping[str, Any]
"""A CustomResourceDefinition object."""

FIRST_LIST: Final = 90.0
"""Seconds that a check waits for the first list. A watch says sooner that it has none."""


@dataclass(frozen=True, slots=True)
class _Held:
    """One object, and what was made of it."""

    item: CustomResource
    order: tuple[str, str]
    name: str
    digest: bytes


class WatchedManifests:
    """What a watch saw last. ``take`` and ``fail`` belong to the event loop."""

    def __init__(self) -> None:
        self._objects: Mapping[str, CustomResource] = {}
        self._held: dict[str, _Held] = {}
        self._by_name: dict[str, _Held] = {}
        self._failure: Failure | None = None
        self._known = asyncio.Event()

    def take(self, objects: Mapping[str, CustomResource]) -> None:
        """These are all there are now. The mapping must not change any more."""
        self._objects = objects
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
        return await asyncio.to_thread(self._scan, self._objects)

    def read(self, name: str) -> bytes:
        try:
            return _manifest(self._by_name[name].item)
        except orjson.JSONEncodeError:
            raise OSError(errno.EINVAL, "nested too deeply") from None

    def _scan(self, objects: Mapping[str, CustomResource]) -> Mapping[str, bytes]:
        # One check of a backend runs at a time, so nobody else touches what is held.
        before = self._held
        self._held = {}
        for key, item in objects.items():
            held = before.get(key)
            if held is None or held.item is not item:
                held = _hold(item)
            if held is not None:
                self._held[key] = held
        ordered = sorted(self._held.values(), key=lambda held: held.order)
        self._by_name = {held.name: held for held in ordered}
        return {held.name: held.digest for held in ordered}


def _hold(item: CustomResource) -> _Held | None:
    """None for one that its cluster has not accepted."""
    metadata = item.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not is_established(item):
        return None
    created = str(metadata.get("creationTimestamp") or "") if isinstance(metadata, dict) else ""
    try:
        digest = hashlib.sha256(_manifest(item)).digest()
    except orjson.JSONEncodeError:
        digest = b""  # told when it is read
    # The suffix is what a reader of files goes by.
    return _Held(item, (created, name), f"{name}.json", digest)


def is_established(item: CustomResource) -> bool:
    """Whether its names were accepted and an apiserver serves it."""
    status = item.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return any(
        isinstance(condition, dict)
        and condition.get("type") == "Established"
        and condition.get("status") == "True"
        for condition in (conditions if isinstance(conditions, list) else ())
    )


def served(item: CustomResource) -> Iterator[GroupVersion]:
    """The group-versions that it wants to be part of."""
    spec = item.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("versions"), list):
        return
    for version in spec["versions"]:
        if isinstance(version, dict) and version.get("served") is True:
            yield GroupVersion(f"apis/{spec.get('group')}/{version.get('name')}")


def _manifest(item: CustomResource) -> bytes:
    """What of an object documents are made of."""
    metadata = item.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return orjson.dumps(
        {
            "apiVersion": item.get("apiVersion"),
            "kind": item.get("kind"),
            "metadata": {"name": name},
            "spec": item.get("spec"),
        },
        option=orjson.OPT_SORT_KEYS,
    )
