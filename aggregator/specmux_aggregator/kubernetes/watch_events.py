"""Combine a list with the events after it: the objects of a resource, and the version reached. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from specmux_aggregator.http.response_fields import RETRY_AFTER_MAX, status_failure
from specmux_aggregator.model.failure import Cause, Failure
from specmux_converters.json_values import mapping, text, within

Object: TypeAlias = Mapping[str, Any]
"""An object of the API as JSON, with apiVersion and kind."""

GONE: Final = 410

_MALFORMED: Final = Failure(Cause.BAD_BODY, "an event is none of the API's")


class ObjectIdentity(Protocol):
    """The kept part of an object, for consumers that need less than all of it."""

    @property
    def identity(self) -> tuple[object, object]:
        """The identity of the object, as by ``identity_of``."""
        ...


Keep: TypeAlias = Callable[[Object], Object | ObjectIdentity]
"""Reduces an object to the part that is kept."""


def whole(item: Object) -> Object:
    """Keep the whole object."""
    return item


@dataclass(frozen=True, slots=True)
class WatchedObjects:
    """The kept objects by name, "namespace/name" for namespaced ones."""

    objects: Mapping[str, Any]
    version: str
    """The resource version from which a watch resumes."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """The kept part of one page of a list. ``token``: of the next page, "" for the last."""

    objects: Mapping[str, Any]
    version: str
    token: str


def page_of(
    page: Mapping[str, Any], before: WatchedObjects | None, *, keep: Keep = whole
) -> ListPage | Failure:
    """The content of one page. An object unchanged since ``before`` is the identical one."""
    version = _version(page)
    if version is None:
        return Failure(Cause.BAD_BODY, "the list has no resourceVersion")
    items = page.get("items")
    if items is not None and not isinstance(items, list):
        return Failure(Cause.BAD_BODY, "the list's items are none")
    objects: dict[str, Object | ObjectIdentity] = {}
    kind = str(page.get("kind", "")).removesuffix("List")
    for item in items or ():
        name = _name(item)
        if name is None:
            return Failure(Cause.BAD_BODY, "an item of the list has no name")
        known = None if before is None else before.objects.get(name)
        # Items omit the two fields that the list states for all.
        if known is None or not _is_same(known, item):
            known = keep({"apiVersion": page.get("apiVersion"), "kind": kind, **item})
        objects[name] = known
    return ListPage(objects, version, text(_metadata(page).get("continue")))


def confirm_list(
    now: WatchedObjects, before: WatchedObjects | None, lacked: frozenset[str]
) -> tuple[WatchedObjects, frozenset[str]]:
    """The accepted content of a list, and missing objects that must be missing from the next list too before
    they are removed.

    ``lacked``: what the previous list lacked. So a server that briefly answers with less removes nothing.
    """
    if before is None:
        return now, frozenset()
    doubtful = frozenset(before.objects.keys() - now.objects.keys() - lacked)
    kept = {name: before.objects[name] for name in doubtful}
    return WatchedObjects({**now.objects, **kept}, now.version), doubtful


def after(
    held: WatchedObjects, events: Iterable[Mapping[str, Any]], *, keep: Keep = whole
) -> tuple[WatchedObjects, Failure | None]:
    """The objects after the events up to the first invalid one, and its failure."""
    objects: dict[str, Object | ObjectIdentity] | None = None
    version, failure = held.version, None
    for event in events:
        item = event.get("object")
        if event.get("type") == "ERROR":
            failure = _error(item)
            break
        name, its_version = _name(item), _version(item)
        if not isinstance(item, dict) or its_version is None:
            failure = _MALFORMED
            break
        match event.get("type"):
            case "BOOKMARK":
                pass
            case "ADDED" | "MODIFIED" if name is not None:
                objects = dict(held.objects) if objects is None else objects
                objects[name] = keep(item)
            case "DELETED" if name is not None:
                objects = dict(held.objects) if objects is None else objects
                objects.pop(name, None)
            case _:
                failure = _MALFORMED
                break
        version = its_version
    return WatchedObjects(held.objects if objects is None else objects, version), failure


def differs(one: WatchedObjects | None, other: WatchedObjects) -> bool:
    """Whether the names or the objects under them differ."""
    if one is None or one.objects.keys() != other.objects.keys():
        return True
    return any(other.objects[name] is not item for name, item in one.objects.items())


def _error(status: object) -> Failure:
    code = mapping(status).get("code")
    if not isinstance(code, int):
        return Failure(Cause.SERVER_ERROR, "the watch ended with an error")
    wait = within(status, "details").get("retryAfterSeconds")
    return status_failure(code, min(float(wait), RETRY_AFTER_MAX) if isinstance(wait, int) else None)


def identity_of(item: object) -> tuple[object, object]:
    """Uid and resourceVersion: equal for the same version of the same object."""
    metadata = _metadata(item)
    return metadata.get("uid"), metadata.get("resourceVersion")


def _is_same(known: Object | ObjectIdentity, item: Object) -> bool:
    old = identity_of(known) if isinstance(known, Mapping) else known.identity
    return old == identity_of(item) and None not in old


def _name(item: object) -> str | None:
    metadata = _metadata(item)
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name:
        return None
    return f"{namespace}/{name}" if namespace else name


def _version(item: object) -> str | None:
    version = _metadata(item).get("resourceVersion")
    return version if isinstance(version, str) and version else None


def _metadata(item: object) -> Mapping[str, Any]:
    return within(item, "metadata")
