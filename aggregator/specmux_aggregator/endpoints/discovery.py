"""The answer to a request for discovery, given a Board. Pure."""

from __future__ import annotations

from typing import Final

from specmux_aggregator.discovery.accept import Form, form_for
from specmux_aggregator.discovery.directory import Version
from specmux_aggregator.discovery.index import Board, Subject, discovery_path, forms_of
from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.http.negotiation import coding_for
from specmux_aggregator.http.prepared import Prepared, prepare
from specmux_aggregator.http.representations import ALLOW, FORMATS, VARY, cache_control, names, status_reply

ROUTE: Final = "discovery"

RETRY_AFTER: Final = ("Retry-After", "1")


def decide(board: Board, request: Request, *, is_private: bool = False) -> Prepared | None:
    """What to answer; None for a path that is not discovery's. ``is_private``: who asks matters, so no shared
    cache may keep it."""
    path = discovery_path(request.path)
    if path is None:
        return None
    if request.method not in ("GET", "HEAD"):
        return _refused(405, "only GET and HEAD are allowed here", request, ALLOW)
    if not board.is_complete:
        return _refused(503, "a backend has not been asked yet what it has", request, RETRY_AFTER)
    if board.is_blind:
        # An empty list would tell controllers that there are no APIs at all.
        return _refused(503, "no backend could be asked yet what it has", request, RETRY_AFTER)
    subject = board.find(path)
    if subject is None:
        return _refused(404, "the server could not find the requested resource", request)
    if isinstance(subject, Version) and not subject.is_known:
        cause = f" ({subject.lapse.failure.cause})" if subject.lapse else ""
        return _refused(503, f"the server of this group-version cannot be asked{cause}", request, RETRY_AFTER)
    offered = forms_of(path)
    form = form_for(request.accept, offered)
    if form is None:
        types = ", ".join(item.content_type for item in offered)
        return _refused(406, f"only the following media types are accepted: {types}", request, VARY)
    return _represented(board, path, subject, form, request, is_private=is_private)


def _represented(
    board: Board, path: str, subject: Subject, form: Form, request: Request, *, is_private: bool
) -> Prepared:
    coding = coding_for(request.accept_encoding)
    etag = board.sheet(path, subject, form).etag(form, coding)
    if request.if_match is not None and not names(request.if_match, etag, weak=False):
        return _refused(412, "If-Match names another representation", request)
    format_ = FORMATS[form.media_type]
    validating = [cache_control(is_immutable=False, is_private=is_private), ("ETag", etag), VARY]
    if request.if_none_match is not None and names(request.if_none_match, etag, weak=True):
        # No Content-* fields: RFC 9110 15.4.5, and client-go's cache would merge them into its entry.
        return prepare(304, validating, route=ROUTE, format=format_)
    fields = [("Content-Type", form.content_type), *validating]
    if coding is not Coding.IDENTITY:
        fields.append(("Content-Encoding", coding.value))
    body = board.coded(path, subject, form, coding)
    return prepare(200, fields, body, is_head=request.method == "HEAD", route=ROUTE, format=format_)


def _refused(code: int, message: str, request: Request, *fields: tuple[str, str]) -> Prepared:
    return status_reply(code, message, route=ROUTE, request=request, fields=fields)
