"""Read the list of a resource in pages of bounded size.

A page is parsed, reduced to what is kept of its objects, and dropped, all in one thread: a list of thousands
of definitions takes the memory of one page. Pages aim at PAGE_BYTES: the first has FIRST objects, and the
size of each tells how many the next one may have. A page beyond the client's bound is requested again with
half as many objects, down to one; after a page that came too late, so is the next list.

A continue token expires after some minutes. Then the list is read anew, since its pages must be of one
version; when the second token expires as well, it is requested in one piece.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from specmux_aggregator.kubernetes.api_client import ApiClient
from specmux_aggregator.kubernetes.watch_events import GONE, Keep, ListPage, WatchedObjects, page_of
from specmux_aggregator.model.failure import Cause, Failure

FIRST: Final = 100
"""Objects of the first page."""

MOST: Final = 500
"""Objects of a page."""

GROWTH: Final = 4
"""A page has at most so many times the objects of the one before."""

PAGE_BYTES: Final = 4 * 1024 * 1024
"""JSON of a page, approximately."""

OBJECTS_MAX: Final = 100_000

EMPTY_MAX: Final = 200
"""Pages without a new object, after which a list counts as endless."""


@dataclass(slots=True)
class PageSize:
    """Objects per page of one resource, learnt from its pages. ``most``: fewer after a page came too late,
    until a list is complete."""

    limit: int = FIRST
    most: int = MOST

    def learn(self, size: int) -> None:
        """Set the next page's objects after a page of ``size`` bytes."""
        fitting = self.limit * PAGE_BYTES // max(1, size)
        self.limit = max(1, min(fitting, GROWTH * self.limit, self.most))

    def halve(self) -> bool:
        """Whether a smaller page is possible."""
        if self.limit == 1:
            return False
        self.limit //= 2
        return True


async def read_list(
    client: ApiClient,
    path: str,
    *,
    selector: Mapping[str, str],
    before: WatchedObjects | None,
    keep: Keep,
    size: PageSize,
) -> WatchedObjects | Failure:
    """All objects of a list. One that is unchanged since ``before`` is the identical one."""
    for is_paged in (True, True, False):
        found = await _read_once(
            client, path, selector=selector, before=before, keep=keep, size=size if is_paged else None
        )
        if not isinstance(found, Failure):
            size.most = MOST
            return found
        if found.cause is Cause.TIMEOUT:
            size.limit = size.most = max(1, size.limit // 2)
        if found.status != GONE:
            return found
    return found


async def _read_once(
    client: ApiClient,
    path: str,
    *,
    selector: Mapping[str, str],
    before: WatchedObjects | None,
    keep: Keep,
    size: PageSize | None,
) -> WatchedObjects | Failure:
    """``size``: None for one piece."""
    objects: dict[str, Any] = {}
    token, empty = "", 0

    def take(value: Mapping[str, Any], size: int) -> tuple[ListPage, int] | Failure:
        page = page_of(value, before, keep=keep)
        return page if isinstance(page, Failure) else (page, size)

    while len(objects) <= OBJECTS_MAX and empty <= EMPTY_MAX:
        query = {**selector, **({} if size is None else {"limit": str(size.limit)})}
        query |= {"continue": token} if token else {}
        found = await client.read(f"{path}?{urlencode(query)}" if query else path, take)
        if isinstance(found, Failure):
            if found.cause is Cause.TOO_LARGE and size is not None and size.halve():
                continue
            return found
        page, length = found
        empty += page.objects.keys() <= objects.keys()
        objects |= page.objects
        if not page.token:
            return WatchedObjects(objects, page.version)
        token = page.token
        if size is not None:
            size.learn(length)
    return Failure(Cause.TOO_LARGE, f"the list has no end, or more than {OBJECTS_MAX} objects")
