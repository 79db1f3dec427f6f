"""The table of routes: the endpoint and the methods of each path.

A refused method and the methods of a path (RFC 9110 15.5.6, 9.3.7) follow from a row.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, method_not_allowed

READ: Final = ("GET", "HEAD")


class Endpoint(Protocol):
    """Answers requests below one path. Called only for paths and methods of its route."""

    def immediate(self, request: Request) -> PreparedAnswer | None:
        """The answer if it is in memory; None if it has to wait. Dependencies other than the Snapshot are
        bounded by its ``good_until``, since servers remember answers within a generation."""
        ...

    async def respond(self, request: Request) -> PreparedAnswer:
        """The answer, within the endpoint's own deadline. Raises nothing but CancelledError."""
        ...


@dataclass(frozen=True, slots=True)
class PageEndpoint:
    """An endpoint whose answers are always made anew."""

    page: Callable[[Request], Awaitable[PreparedAnswer]]

    def immediate(self, request: Request) -> None:
        return None

    async def respond(self, request: Request) -> PreparedAnswer:
        return await self.page(request)


@dataclass(frozen=True, slots=True)
class Route:
    """A row: an endpoint and its path. A path that ends in "/" includes itself without the slash and
    everything below; any other matches exactly."""

    path: str
    endpoint: Endpoint
    name: str
    """The label of its requests in metrics."""
    fields: tuple[tuple[str, str], ...] = ()
    """Additional header fields of a refused method."""

    def refusal(self, request: Request) -> PreparedAnswer | None:
        """The answer to a method that the route does not have; None if it has it."""
        if request.method in READ:
            return None
        return method_not_allowed(request, route=self.name, fields=self.fields)


class RouteTable:
    """Routes by path: exact matches first, then in the order of the rows."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._exact = {route.path: route for route in self.routes if not _is_tree(route)}
        self._trees = tuple((route.path.removesuffix("/"), route) for route in self.routes if _is_tree(route))

    def find(self, path: str) -> Route | None:
        found = self._exact.get(path)
        if found is not None:
            return found
        for prefix, route in self._trees:
            if path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("", "/"):
                return route
        return None


def _is_tree(route: Route) -> bool:
    return route.path.endswith("/") and route.path != "/"
