"""``/openapi/v2``, merged from all published documents at the first request, in a process of its own.

Its bytes share the budget of documents and are dropped with the next publication. Documents that cannot be
fetched, or that Protobuf cannot express, are left out, which the answer says; owners are asked again later.
Reads are counted by caller: a remembered request does not identify its sender, so they are claimed before the
memo.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from aiohttp.http import RawRequestMessage

from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.endpoints.not_found import answer_unready
from specmux_aggregator.endpoints.openapi import etag_of
from specmux_aggregator.endpoints.routes import READ
from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.http.negotiation import SWAGGER_MEDIA_TYPES, coding_for, media_type_for
from specmux_aggregator.http.prepared_answer import (
    FORMATS,
    PreparedAnswer,
    Representation,
    deliver,
    evaluate_preconditions,
    not_acceptable,
)
from specmux_aggregator.metrics.swagger_readers import SwaggerReaders
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.document_urls import SWAGGER_PATH
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_aggregator.mounts import NamedFunction
from specmux_aggregator.server.dispatch import request_of, target_of
from specmux_aggregator.server.protocols import Reply, Responder, WireRequest
from specmux_aggregator.workers.built import NeededDocuments, SwaggerForm, Unencodable
from specmux_aggregator.workers.worker import Worker
from specmux_cache.reading.single_flight import SingleFlight
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON, MediaType

if TYPE_CHECKING:  # imported in the worker process alone
    from specmux_aggregator.workers.openapi_v2 import merge_swagger
else:
    merge_swagger = NamedFunction("specmux_aggregator.workers.openapi_v2:merge_swagger")

PATH: Final = "/openapi/v2"
ROUTE: Final = "openapi_v2"

RETRY: Final = 10.0
"""Seconds for which an incomplete answer is valid; then the owners are asked again."""

ROUNDS: Final = 3
"""Attempts to load the documents into the process, which forgets them when it is restarted."""

_OWNER: Final = BackendName("")
_GROUP_VERSION: Final = GroupVersion("openapi/v2")


@dataclass(frozen=True, slots=True)
class PartialMerge:
    """A merged document that lacks some documents."""

    whole: DocumentKey
    """The key of the complete document."""
    key: DocumentKey
    keys: tuple[DocumentKey, ...]
    """The documents that it contains."""
    lacking: int
    until: float
    """Monotonic seconds."""


class MergedSwagger:
    """The endpoint."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        documents: DocumentRepository,
        representations: Representations,
        worker: Worker,
        *,
        limits: Limits,
        is_private: bool,
        is_looking: Callable[[], bool],
    ) -> None:
        """``is_looking``: whether the first check of backends is under way."""
        self._snapshot = snapshot
        self._documents = documents
        self._representations = representations
        self._worker = worker
        self._limits = limits
        self._is_private = is_private
        self._is_looking = is_looking
        self._merged: tuple[int, DocumentKey] | None = None
        """The key of the merged document in the snapshot of that generation."""
        self._partials: dict[MediaType, PartialMerge] = {}
        self.made = 0
        """Number of forms built."""
        self._flights: SingleFlight[tuple[DocumentKey, MediaType, Coding], SwaggerForm | str] = SingleFlight()

    def immediate(self, request: Request) -> PreparedAnswer | None:
        if self._is_looking():
            return None
        decision = self._represent(request)
        if isinstance(decision, PreparedAnswer):
            return decision
        key, media_type, representation = decision
        ready = evaluate_preconditions(representation, request)
        if ready is not None:
            return ready
        body = self._representations.get(key, media_type, representation.coding)
        return None if body is None else deliver(representation, body)

    async def respond(self, request: Request) -> PreparedAnswer:
        if self._is_looking():
            return _answer_unready("the backends are being asked for the first time", request)
        ready = self.immediate(request)
        if ready is not None:
            return ready
        decision = self._represent(request)
        if isinstance(decision, PreparedAnswer):
            return decision
        key, media_type, representation = decision
        coding, partial = representation.coding, self._partials.get(media_type)
        whole, every = self._key(), _keys(self._snapshot())
        keys = partial.keys if partial is not None and partial.key == key else every
        form = await self._flights.run(
            (key, media_type, coding), lambda: self._make(key, keys, media_type, coding)
        )
        if isinstance(form, str):
            return _answer_unready(form, request)
        if lacking := {*form.refused, *form.unfit}:
            kept = tuple(each for each in keys if each not in lacking)
            until = time.monotonic() + RETRY if form.refused else math.inf
            partial = PartialMerge(whole, _merged_key(kept), kept, len(every) - len(kept), until)
            self._partials |= dict.fromkeys(SWAGGER_MEDIA_TYPES if form.refused else (media_type,), partial)
            self._representations.put(partial.key, media_type, coding, form.body)
            representation = _of_partial(representation, partial, media_type)
        return deliver(representation, form.body)

    def forget(self) -> None:
        """Release the documents that the process keeps."""
        if self.made:
            self._worker.end_idle()

    async def close(self) -> None:
        await self._flights.close()

    def _represent(self, request: Request) -> PreparedAnswer | tuple[DocumentKey, MediaType, Representation]:
        media_type = media_type_for(request.accept, SWAGGER_MEDIA_TYPES)
        if media_type is None:
            return not_acceptable(SWAGGER_MEDIA_TYPES, request, route=ROUTE)
        key = self._key()
        coding = coding_for(request.accept_encoding)
        representation = Representation(
            content_type=media_type,
            etag=etag_of(key, media_type, coding),
            route=ROUTE,
            format=FORMATS[media_type],
            coding=coding,
            is_private=self._is_private,
            is_head=request.method == "HEAD",
        )
        partial = self._partials.get(media_type)
        if partial is not None and partial.whole == key and time.monotonic() < partial.until:
            return partial.key, media_type, _of_partial(representation, partial, media_type)
        return key, media_type, representation

    def _key(self) -> DocumentKey:
        snapshot = self._snapshot()
        if self._merged is None or self._merged[0] != snapshot.generation:
            self._merged = snapshot.generation, _merged_key(_keys(snapshot))
        return self._merged[1]

    async def _make(
        self, key: DocumentKey, keys: Sequence[DocumentKey], media_type: MediaType, coding: Coding
    ) -> SwaggerForm | str:
        """The form, or why it is unavailable now."""
        documents: list[tuple[DocumentKey, bytes]] = []
        without: set[DocumentKey] = set()
        for _ in range(ROUNDS):
            wanted = [each for each in keys if each not in without]
            try:
                made = await self._worker.run(
                    merge_swagger,
                    wanted,
                    documents,
                    media_type=media_type,
                    coding=coding,
                    limits=self._limits,
                )
            except WorkerFailed as error:
                return f"the document could not be made: {error}"
            match made:
                case Unencodable(reason):
                    return f"the document could not be made: {reason}"
                case SwaggerForm(body, refused, unfit):
                    self.made += 1
                    lacking = (*refused, *sorted(without))
                    if not lacking and not unfit:
                        self._representations.put(key, media_type, coding, body)
                    return SwaggerForm(body, lacking, unfit)
                case NeededDocuments(needed):
                    documents = []
                    for each in needed:
                        json = await self._documents.obtain(each, JSON, Coding.IDENTITY)
                        if isinstance(json, bytes):
                            documents.append((each, json))
                        else:
                            without.add(each)
        return "the documents change faster than they can be merged"


def _answer_unready(message: str, request: Request) -> PreparedAnswer:
    return replace(answer_unready(message, request, retry_after=1), route=ROUTE)


def _of_partial(
    representation: Representation, partial: PartialMerge, media_type: MediaType
) -> Representation:
    warning = f'199 - "without {partial.lacking} documents that cannot be had"'
    etag = etag_of(partial.key, media_type, representation.coding)
    return replace(representation, etag=etag, fields=(("Warning", warning),))


def _keys(snapshot: Snapshot) -> list[DocumentKey]:
    return [entry.key for _, entry in sorted(snapshot.entries.items())]


def _merged_key(keys: Sequence[DocumentKey]) -> DocumentKey:
    """The key of the merged document, derived from its parts."""
    text = "\n".join(f"{key.group_version} {key.hash}" for key in keys)
    return DocumentKey(_OWNER, _GROUP_VERSION, Hash(sha256(text.encode()).hexdigest()))


class SwaggerReads:
    """Implements the server's ``StreamingHandler``."""

    def __init__(self, service: Responder, readers: SwaggerReaders) -> None:
        self._service = service
        self._readers = readers

    def claims(self, message: RawRequestMessage) -> bool:
        return message.method in READ and target_of(message).partition("?")[0] == SWAGGER_PATH

    async def stream(self, request: WireRequest) -> Reply:
        headers = request.message.headers
        self._readers.count(headers.get("Accept"), headers.get("User-Agent"))
        found = self._service.immediate(request_of(request.message))
        return Reply(found if isinstance(found, PreparedAnswer) else await self._service.respond(found))
