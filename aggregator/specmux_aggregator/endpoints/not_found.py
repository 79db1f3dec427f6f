"""Answers about documents that cannot be delivered now: 404, and 503 while one may still appear. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, status_reply
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.document_urls import ROOT_PATH
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.snapshot import Snapshot
from specmux_converters.group_versions import GroupVersion

ROUTE_ROOT: Final = "openapi_root"
ROUTE_DOCUMENT: Final = "openapi_document"

FIRST_LOOK_STEP: Final = 0.1
"""Seconds for which an answer about the first check of backends may be repeated."""


def answer_unavailable(failure: Failure, request: Request, *, retry_after: float) -> PreparedAnswer:
    """503 for a document that its owner cannot deliver now and that is not cached."""
    message = f"the document is not available: its backend failed ({failure.cause})"
    return answer_unready(message, request, retry_after=retry_after)


def answer_looking(request: Request, *, now: float) -> PreparedAnswer:
    """503 for a root without documents, or an absent document, while the first check of backends is under
    way.

    ``now``: monotonic seconds.
    """
    answer = answer_unready("the backends are being asked for the first time", request, retry_after=1)
    route = ROUTE_ROOT if request.path == ROOT_PATH else ROUTE_DOCUMENT
    return replace(answer, route=route, good_until=now + FIRST_LOOK_STEP)


def possible_owners(snapshot: Snapshot, group_version: GroupVersion) -> tuple[BackendName, ...]:
    """The backends that may have the group-version by now; a replica that asked one later may have published
    the hash."""
    return tuple(
        name
        for name, observation in snapshot.observations.items()
        if observation.backend.url and observation.failure is None and observation.backend.owns(group_version)
    )


def answer_unknown(
    snapshot: Snapshot, group_version: GroupVersion, request: Request, *, has_hash: bool
) -> PreparedAnswer:
    """404, or 503 while the document may still appear: a backend has not answered yet, or one that fails now
    may have it. ``has_hash``: whether the request names one."""
    for observation in snapshot.observations.values():
        backend, failure = observation.backend, observation.failure
        if failure is not None and backend.group_versions is not None and backend.owns(group_version):
            return answer_unavailable(failure, request, retry_after=failure.retry_after or 1)
        # Another replica may have published the hash before the failure, or where it reaches the server.
        is_silent = failure is not None and observation.dialect is not None
        is_silent |= any(server.failure is not None for server in observation.servers)
        if has_hash and is_silent and backend.owns(group_version):
            return answer_silent(request)
    if not snapshot.is_partial:
        return status_reply(
            404, "the server could not find the requested resource", route=ROUTE_DOCUMENT, request=request
        )
    return answer_unready("a backend that may have the document has not answered yet", request, retry_after=1)


def answer_silent(request: Request) -> PreparedAnswer:
    """503 for a hash that a backend may have published, if only it answered."""
    return answer_unready("a server that may have the document does not answer", request, retry_after=1)


def answer_unready(message: str, request: Request, *, retry_after: float) -> PreparedAnswer:
    fields = [("Retry-After", str(max(1, round(retry_after))))]
    return status_reply(503, message, route=ROUTE_DOCUMENT, request=request, fields=fields)
