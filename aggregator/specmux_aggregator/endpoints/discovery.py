"""The answer to a discovery request, given a DiscoveryIndex. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from specmux_aggregator.api_discovery.accept import DiscoveryForm, form_for
from specmux_aggregator.api_discovery.directory import ListedVersion
from specmux_aggregator.api_discovery.encoded_directory import (
    VERSION_PATH,
    DiscoveryIndex,
    PendingAnswer,
    Subject,
    discovery_path,
    forms_of,
)
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.negotiation import coding_for
from specmux_aggregator.http.prepared_answer import (
    FORMATS,
    CacheStatus,
    PreparedAnswer,
    Representation,
    deliver,
    evaluate_preconditions,
    method_not_allowed,
    not_acceptable,
    status_reply,
)

ROUTE: Final = "discovery"

RETRY_AFTER: Final = ("Retry-After", "1")


def decide(
    index: DiscoveryIndex, request: Request, *, is_private: bool = False
) -> PreparedAnswer | PendingAnswer | None:
    """The answer, or what has to be built first; None for a path outside discovery. ``is_private``: access is
    restricted, so no shared cache may store it."""
    path = discovery_path(request.path)
    if path is None:
        return None
    if request.method not in ("GET", "HEAD"):
        return method_not_allowed(request, route=ROUTE)
    if not index.is_complete:
        return _refuse(503, "a backend has not been asked yet what it has", request, RETRY_AFTER)
    if index.is_blind:
        # An empty list would tell controllers that there are no APIs.
        return _refuse(503, "no backend could be asked yet what it has", request, RETRY_AFTER)
    subject = index.find(path)
    if subject is None and path == VERSION_PATH and index.directory.awaits_version:
        return _refuse(503, "the server whose version this is cannot be asked", request, RETRY_AFTER)
    if subject is None:
        return _refuse(404, "the server could not find the requested resource", request)
    if isinstance(subject, ListedVersion) and not subject.is_known:
        cause = f" ({subject.lapse.failure.cause})" if subject.lapse else ""
        return _refuse(503, f"the server of this group-version cannot be asked{cause}", request, RETRY_AFTER)
    offered = forms_of(path)
    form = form_for(request.accept, offered)
    if form is None:
        return not_acceptable(dict.fromkeys(item.content_type for item in offered), request, route=ROUTE)
    if form.is_of_one and not index.directory.has_peers:
        form = replace(form, is_of_one=False)  # the bytes are the same
    return _represent(index, path, subject, form, request, is_private=is_private)


def _represent(
    index: DiscoveryIndex,
    path: str,
    subject: Subject,
    form: DiscoveryForm,
    request: Request,
    *,
    is_private: bool,
) -> PreparedAnswer | PendingAnswer:
    coding = coding_for(request.accept_encoding)
    rendering = index.rendering(path, subject, form)
    if rendering is None:
        return PendingAnswer(index, (path, form, coding))
    representation = Representation(
        content_type=form.content_type,
        etag=rendering.etag(form, coding),
        route=ROUTE,
        format=FORMATS[form.media_type],
        coding=coding,
        is_private=is_private,
        is_head=request.method == "HEAD",
        cache_status=CacheStatus.HIT,
    )
    answer = evaluate_preconditions(representation, request)
    if answer is not None:
        return answer
    body = index.find_coded(path, form, coding, rendering)
    return PendingAnswer(index, (path, form, coding)) if body is None else deliver(representation, body)


def _refuse(code: int, message: str, request: Request, *fields: tuple[str, str]) -> PreparedAnswer:
    return status_reply(code, message, route=ROUTE, request=request, fields=fields)
