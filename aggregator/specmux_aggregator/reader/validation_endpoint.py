"""``POST /openapi/validate``: what an apiserver would answer, without asking one.

The event loop collects the bounded body and passes on the answer; a reader process of its own does everything
that depends on the body, so no body delays explain and search.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from aiohttp import hdrs
from aiohttp.http import RawRequestMessage

from specmux_aggregator.auth.fair_queue import TooManyWait, Turns
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.http.messages import REASONS, Coding
from specmux_aggregator.http.prepared_answer import NO_STORE, PreparedAnswer, prepare, refusal, retry_fields
from specmux_aggregator.http.query import BadParameters, flag, parameters
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.snapshot import Snapshot
from specmux_aggregator.mounts import VALIDATION, NamedFunction
from specmux_aggregator.reader.process import Reader, Unready
from specmux_aggregator.reader.reader_client import Reading
from specmux_aggregator.reader.requests import (
    BODY_MAX,
    BODY_TYPES,
    Judgement,
    QuestionRefusal,
    State,
    ValidationRequest,
    Wants,
)
from specmux_aggregator.server.admission import address_of
from specmux_aggregator.server.bodies import (
    BodiesFull,
    BodyBroken,
    BodyRefused,
    BodyStalled,
    BodyTooLarge,
    RequestBodies,
)
from specmux_aggregator.server.dispatch import target_of
from specmux_aggregator.server.protocols import Reply, WireRequest
from specmux_converters.releases import PREVIEW, nearest_minor, newer_note

PATH: Final = "/openapi/validate"
ROUTE: Final = "validate"

_FORMS: Final = ", ".join(BODY_TYPES)
_JOB: Final[NamedFunction[[State, str, ValidationRequest], Judgement | QuestionRefusal | Wants]] = (
    NamedFunction(VALIDATION)
)


class ValidationEndpoint:
    """The endpoint; its requests have bodies. Implements the server's ``StreamingHandler``."""

    def __init__(
        self,
        reading: Reading,
        *,
        seconds: float,
        most: int,
        counted: Callable[[str], None],
        version: Callable[[], str | None],
    ) -> None:
        """``reading``: with a process of its own. ``version``: of the cluster, whose rules apply.
        ``seconds``: for receiving the body, and again for waiting and checking. ``most``: objects that are
        checked or wait. ``counted`` is called with each result, one of the metrics'
        ``VALIDATION_RESULTS``."""
        self._reading = reading
        self._bodies = RequestBodies(most_bytes=BODY_MAX, seconds=seconds)
        self._seconds = seconds
        self._most = most
        self._asked = 0
        # A quarter of the places is reserved for addresses other than the busiest.
        self._turns = Turns(1, of_one=1, waiting_of_one=max(most - most // 4 - 1, 0))
        self._counted = counted
        self._version = version

    def claims(self, message: RawRequestMessage) -> bool:
        return PATH in message.path and target_of(message).partition("?")[0] == PATH

    async def stream(self, request: WireRequest) -> Reply:
        prepared, result = await self._answer(request)
        self._counted(result)
        message = request.message
        ends = message.should_close or message.upgrade or not request.payload.is_eof()
        return Reply(prepared, is_last=ends)

    async def close(self) -> None:
        await self._reading.close()

    async def _answer(self, request: WireRequest) -> tuple[PreparedAnswer, str]:
        """The answer, and the result to count."""
        asked = _parse_question(request.message)
        if isinstance(asked, PreparedAnswer):
            return asked, "refused"
        try:
            async with self._bodies.whole(request) as body:
                found = await self._in_turn(address_of(request.connection.peername), asked(body))
        except TooManyWait:
            return _refuse(429, "too many objects are being checked, or wait for it; try again"), "busy"
        except TimeoutError:
            return _refuse(503, "the check did not get its turn in time; try again"), "failed"
        except BodiesFull:
            return _refuse(429, "too many bodies are being checked; try again"), "busy"
        except BodyRefused as error:
            return _refuse_body(error), "refused"
        except Unready as error:
            return _refuse(error.code, str(error)), "busy" if error.code == 429 else "failed"
        return self._judge(found)

    async def _in_turn(self, address: bytes, asked: ValidationRequest) -> Judgement | QuestionRefusal:
        """Check one object at a time, with client addresses in rotation: a client's costly objects delay
        others by one object at most. Raises TooManyWait, TimeoutError, Unready."""
        if self._asked >= self._most:
            raise TooManyWait
        self._asked += 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._turns.take(address)
            try:
                asked = replace(asked, release=f"1.{nearest_minor(self._version(), newest=PREVIEW)}")
                return await self._reading.of_found(_JOB, asked)
            finally:
                self._turns.give_back(address)
        finally:
            self._asked -= 1

    def _judge(self, found: Judgement | QuestionRefusal) -> tuple[PreparedAnswer, str]:
        if isinstance(found, Judgement):
            note = newer_note(self._version())
            notes = [f'299 - "{note}"'] if note is not None else []
            warnings = [("Warning", value) for value in (*found.warnings, *notes)]
            fields = [("Content-Type", "application/json"), NO_STORE, *warnings]
            prepared = prepare(found.code, fields, found.body, route=ROUTE, format="json")
            return prepared, "valid" if found.is_valid else "invalid"
        if found.code == 404 and self._reading.snapshot.is_partial:
            waiting = "a backend that may have the kind has not answered yet"
            return _refuse(503, waiting), "failed"
        return _refuse(found.code, found.message), "failed" if found.code == 504 else "refused"


def validation_of(
    settings: Settings,
    documents: DocumentRepository,
    snapshot: Callable[[], Snapshot],
    metrics: Metrics,
    *,
    version: Callable[[], str | None],
) -> ValidationEndpoint | None:
    """The endpoint with a reader process of its own, so that costly bodies neither delay questions nor empty
    their index. None if it is off."""
    wanted = settings.validation
    if not wanted.enabled:
        return None
    reader = Reader(request_seconds=wanted.timeout)
    reading = Reading(reader, documents, snapshot)
    return ValidationEndpoint(
        reading,
        seconds=wanted.timeout,
        most=wanted.max_in_flight,
        counted=metrics.validation,
        version=version,
    )


def _parse_question(message: RawRequestMessage) -> PreparedAnswer | Callable[[bytes], ValidationRequest]:
    """The question to ask once the body has arrived, or an answer that does not depend on the body."""
    if message.method != "POST":
        is_head = message.method == "HEAD"
        return _refuse(405, "only POST is allowed here", [("Allow", "POST")], is_head=is_head)
    try:
        given = parameters(target_of(message).partition("?")[2])
        wants_report = "report" in given and flag(given, "report")
    except BadParameters as error:
        return _refuse(400, str(error))
    fault = _form_fault(message)
    if fault is not None:
        return fault
    coding = _coding(message) or Coding.IDENTITY
    return lambda body: ValidationRequest(
        body=body,
        media_type=message.headers.get(hdrs.CONTENT_TYPE) or "application/json",
        directive=given.get("fieldValidation", ""),
        coding=coding,
        wants_report=wants_report,
    )


def _form_fault(message: RawRequestMessage) -> PreparedAnswer | None:
    """Why a body of this form is not parsed."""
    headers = message.headers
    transfer = headers.get(hdrs.TRANSFER_ENCODING, "chunked")
    if transfer.strip().lower() != "chunked":
        return _refuse(501, "of transfer codings only chunked is read")
    if _coding(message) is None:
        text = "of content codings only gzip is read"
        return _refuse(415, text, [("Accept-Encoding", "gzip, identity")])
    return None


def _coding(message: RawRequestMessage) -> Coding | None:
    coding = message.headers.get(hdrs.CONTENT_ENCODING, "").strip().lower()
    return {"": Coding.IDENTITY, "identity": Coding.IDENTITY, "gzip": Coding.GZIP}.get(coding)


def _refuse_body(error: BodyRefused) -> PreparedAnswer:
    match error:
        case BodyTooLarge():
            return _refuse(413, f"Request entity too large: limit is {BODY_MAX}")
        case BodyStalled():
            return _refuse(408, "the body of the request did not come")
        case BodyBroken():
            return _refuse(400, "the body of the request is malformed")
    return _refuse(503, "the body of the request was not read")


def _refuse(
    code: int, message: str, fields: Iterable[tuple[str, str]] = (), *, is_head: bool = False
) -> PreparedAnswer:
    fields = [*fields, *retry_fields(code)]
    if code == 415 and not fields:
        fields = [("Accept", _FORMS), ("Accept-Post", _FORMS)]  # RFC 9110 15.5.16; W3C LDP 7.1
    return refusal(code, REASONS[code], message, fields=fields, is_head=is_head, route=ROUTE)
