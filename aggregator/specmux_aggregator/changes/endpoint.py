"""``/openapi/changes``, and below it one group-version's: the change log as JSON, text and Markdown.

Answers are made when somebody asks; equal bytes have equal ETags. A comparison of two named documents never
changes.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

import orjson

from specmux_aggregator.changes.entries import Findings, LogEntry
from specmux_aggregator.changes.history import History
from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.http.content_codings import encoded
from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.negotiation import coding_for, media_type_for
from specmux_aggregator.http.prepared import Prepared
from specmux_aggregator.http.representations import (
    Representation,
    delivered,
    method_not_allowed,
    not_acceptable,
    settled,
    status_reply,
)
from specmux_aggregator.model.observation import Hash
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON, MediaType
from specmux_schemas.differences import ChangeSeverity
from specmux_schemas.differences.reports import Report, render
from specmux_schemas.differences.reports.json_report import read_change

PATH: Final = "/openapi/changes"
ROUTE: Final = "changes"
FORMAT: Final = "specmux.changes/v1"
TEXT: Final = MediaType("text/plain")
MARKDOWN: Final = MediaType("text/markdown")
OFFERED: Final = (JSON, TEXT, MARKDOWN)
_FORMATS: Final[dict[MediaType, str]] = {JSON: "json", TEXT: "text", MARKDOWN: "text"}

ENTRIES_MAX: Final = 100
"""Entries of one answer; ``since`` has the rest."""


class BadLogQuery(ValueError):
    """The message is for the client."""


@dataclass(frozen=True, slots=True)
class Query:
    since: int = 0
    severity: ChangeSeverity | None = None
    hashes: tuple[Hash, Hash] | None = None


class ChangesEndpoint:
    """Implements the service's ``Endpoint`` protocol."""

    def __init__(self, history: History, *, is_private: bool) -> None:
        self._history = history
        self._is_private = is_private

    def immediate(self, request: Request) -> Prepared | None:
        return None

    async def respond(self, request: Request) -> Prepared:
        if request.method not in ("GET", "HEAD"):
            return method_not_allowed(request, route=ROUTE)
        media_type = media_type_for(request.accept, OFFERED)
        if media_type is None:
            return not_acceptable(OFFERED, request, route=ROUTE)
        try:
            query = read_query(request.query)
        except BadLogQuery as error:
            return status_reply(400, str(error), route=ROUTE, request=request)
        name = GroupVersion(request.path.removeprefix(PATH).strip("/"))
        if query.hashes is not None:
            return await self._comparison(request, name, query.hashes, media_type)
        if not name:
            entries = [entry for entry in self._history.log.latest() if _is_wanted(entry, query)]
            return await self._delivered(request, media_type, lambda: listed(entries, media_type))
        entries = self._history.log.of(name, since=query.since, at_least=query.severity)[:ENTRIES_MAX]
        if not entries and not self._history.is_published(name):
            return status_reply(404, "no such group-version is published", route=ROUTE, request=request)
        return await self._delivered(request, media_type, lambda: listed(entries, media_type))

    async def _comparison(
        self, request: Request, name: GroupVersion, hashes: tuple[Hash, Hash], media_type: MediaType
    ) -> Prepared:
        kept = self._history.hashes(name)
        for hash in hashes:
            if hash not in kept and await self._history.document(name, hash) is None:
                known = ", ".join(kept) or "none"
                message = f"no document of this hash is kept; those of this group-version are: {known}"
                return status_reply(404, message, route=ROUTE, request=request)
        try:
            found = await self._history.comparison(name, *hashes)
        except WorkerFailed as error:
            found = str(error)
        if not isinstance(found, Findings):
            message = f"the documents cannot be compared: {found}"
            return status_reply(503, message, route=ROUTE, request=request, fields=[("Retry-After", "10")])
        body = comparison_body(name, hashes, found)
        return await self._delivered(
            request, media_type, lambda: shown([orjson.loads(body)], body, media_type), is_immutable=True
        )

    async def _delivered(
        self,
        request: Request,
        media_type: MediaType,
        make: Callable[[], bytes],
        *,
        is_immutable: bool = False,
    ) -> Prepared:
        coding = coding_for(request.accept_encoding)
        # Rendering and compressing may take milliseconds, which other clients would wait for.
        plain, body = await asyncio.to_thread(_made, make, coding)
        digest = hashlib.sha256(plain).hexdigest()[:32]
        suffix = "" if coding is Coding.IDENTITY else f"-{coding.value}"
        representation = Representation(
            content_type=media_type if media_type == JSON else f"{media_type}; charset=utf-8",
            etag=ETag(f'"{digest}{suffix}"'),
            route=ROUTE,
            format=_FORMATS[media_type],
            coding=coding,
            is_immutable=is_immutable,
            is_private=self._is_private,
            is_head=request.method == "HEAD",
        )
        return settled(representation, request) or delivered(representation, body)


def read_query(query: str) -> Query:
    """Raises BadLogQuery. Parameters that are not ours are skipped: kubectl adds some to every URL."""
    values = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=32))
    since = values.get("since", "0")
    if not since.isascii() or not since.isdigit() or len(since) > 18:
        raise BadLogQuery('"since" must be the id of an entry')
    level = values.get("severity")
    if level is not None and level.upper() not in ChangeSeverity.__members__:
        raise BadLogQuery('"severity" must be breaking, warning or notice')
    if ("from" in values) != ("to" in values):
        raise BadLogQuery('"from" and "to" belong together')
    hashes = (Hash(values["from"]), Hash(values["to"])) if "from" in values else None
    return Query(int(since), None if level is None else ChangeSeverity[level.upper()], hashes)


def listed(entries: list[LogEntry], media_type: MediaType) -> bytes:
    """Entries as one answer."""
    body = b'{"format":"%b","entries":[%b]}' % (FORMAT.encode(), b",".join(entry.body for entry in entries))
    return shown(
        [orjson.loads(entry.body) for entry in entries] if media_type != JSON else [], body, media_type
    )


def comparison_body(name: GroupVersion, hashes: tuple[Hash, Hash], found: Findings) -> bytes:
    return orjson.dumps(
        {
            "format": FORMAT,
            "groupVersion": name,
            "old": {"hash": hashes[0]},
            "new": {"hash": hashes[1]},
            "summary": {**found.counts, "documentation": found.documentation},
            "truncated": found.is_truncated,
            "changes": orjson.Fragment(found.changes),
        }
    )


def shown(values: list[dict[str, Any]], body: bytes, media_type: MediaType) -> bytes:
    """``body``, or what its entries say in words."""
    if media_type == JSON:
        return body
    form = "text" if media_type == TEXT else "markdown"
    return "\n".join(_told(value, form) for value in values).encode() or b"no changes\n"


def _told(value: dict[str, Any], form: str) -> str:
    sides = [_side(value["groupVersion"], value[side]) for side in ("old", "new")]
    changes = tuple(read_change(change) for change in value["changes"])
    report = Report(sides[0], sides[1], changes, value["summary"]["documentation"])
    told = render(report, form)
    if form == "text":
        when = f"{value['at']} {value['result']}: " if "at" in value else ""
        return f"{when}{sides[0]} to {sides[1]}\n{told}"
    return told


def _side(name: str, version: dict[str, str] | None) -> str:
    if version is None:
        return "nothing"
    backend = f" of {version['backend']}" if "backend" in version else ""
    return f"{name} {version['hash'][:12]}{backend}"


def _is_wanted(entry: LogEntry, query: Query) -> bool:
    is_severe = query.severity is None or (entry.severity is not None and entry.severity >= query.severity)
    return entry.id > query.since and is_severe


def _made(make: Callable[[], bytes], coding: Coding) -> tuple[bytes, bytes]:
    plain = make()
    return plain, encoded(plain, coding)
