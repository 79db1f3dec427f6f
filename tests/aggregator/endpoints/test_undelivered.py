"""A document whose bytes have to be found: what was decided as its request came, and what happens since."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from specmux_aggregator.aggregation.check_schedule import BackendCheck
from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.endpoints import service as services
from specmux_aggregator.endpoints.not_found import FIRST_LOOK_STEP, answer_looking
from specmux_aggregator.endpoints.routes import RouteTable
from specmux_aggregator.endpoints.service import PendingDocument, Service
from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_aggregator.server.protocols import Pending
from specmux_aggregator.upstream.client import MovedDocument
from specmux_aggregator.workers.built import Unencodable
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON, PROTOBUF, MediaType

APPS = GroupVersion("apis/apps/v1")
BACKEND = Backend(name=BackendName("a"), url="http://x")


def snapshot(hash: str, generation: int = 1) -> Snapshot:
    offers = {APPS: Offer(hash=Hash(hash), provenance=Provenance.NATIVE)}
    observation = Observation(backend=BACKEND, offers=offers, attempted=True)
    return merge({BACKEND.name: observation}, generation=generation)


@dataclass
class Documents:
    """Has every document, whose bytes are its hash, unless it ``fails``; says what it was asked for."""

    asked: list[tuple[Hash, MediaType, Coding]] = field(default_factory=list)
    fails: Failure | MovedDocument | None = None
    refuse: Callable[[DocumentKey, MediaType], bool] = lambda *_: False
    is_at_hand: bool = True

    async def is_kept(self, key: DocumentKey, media_type: MediaType) -> bool:
        return self.is_at_hand

    async def obtain(
        self, key: DocumentKey, media_type: MediaType, coding: Coding
    ) -> bytes | Failure | MovedDocument | Unencodable:
        self.asked.append((key.hash, media_type, coding))
        if self.refuse(key, media_type):
            return Unencodable("too deep")
        return self.fails or key.hash.encode()


class Asked:
    """A refresher that only notes what it is asked."""

    def __init__(self, failure: Failure | None = None) -> None:
        self.observation = Observation(backend=BACKEND, attempted=True, failure=failure)
        self.check = BackendCheck(next_delay=7.4)
        self.vouched_until: float | None = None
        self.stirred = 0
        self.newer_than: list[float | None] = []
        self.answers = True
        self.finds: Callable[[], None] = lambda: None

    async def revalidate(self, *, timeout: float, newer_than: float | None = None) -> bool:
        self.newer_than.append(newer_than)
        self.finds()
        return self.answers

    def stir(self) -> None:
        self.stirred += 1


@dataclass
class Scene:
    """A service in front of one document, and how often it decided."""

    publisher: Any
    documents: Documents
    service: Service
    decisions: list[int]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    decisions: list[int] = []
    decide = services.decide

    def counted(*arguments: Any, **options: Any) -> Any:
        decisions.append(1)
        return decide(*arguments, **options)

    monkeypatch.setattr(services, "decide", counted)
    publisher: Any = SimpleNamespace(current=snapshot("OLD"))
    documents: Any = Documents()
    service = Service(
        publisher,
        Representations(max_bytes=1000),
        documents,
        refresher_of=lambda _: None,
        routes=RouteTable([]),
    )
    return Scene(publisher, documents, service, decisions)


ASKED = Request("GET", f"/openapi/v3/{APPS}", "hash=OLD", accept_encoding="gzip")


def test_what_was_decided_as_the_request_came_is_not_decided_again(scene: Scene) -> None:
    pending = scene.service.immediate(ASKED)
    assert isinstance(pending, PendingDocument)
    answer = asyncio.run(scene.service.respond(pending))
    assert (answer.status, answer.body, answer.is_immutable) == (200, b"OLD", True)
    assert scene.documents.asked == [("OLD", JSON, Coding.GZIP)]
    assert len(scene.decisions) == 1


def test_what_was_published_since_decides(scene: Scene) -> None:
    unhashed = scene.service.immediate(ASKED._replace(query=""))
    hashed = scene.service.immediate(ASKED)
    assert isinstance(unhashed, PendingDocument)
    assert isinstance(hashed, PendingDocument)
    scene.publisher.current = snapshot("NEW", 2)
    assert asyncio.run(scene.service.respond(unhashed)).body == b"NEW"
    moved = asyncio.run(scene.service.respond(hashed))
    assert (moved.status, b"Location: ?hash=NEW&redirected=1" in moved.head) == (301, True)
    assert [hash for hash, _, _ in scene.documents.asked] == ["NEW"]


def test_a_document_that_is_gone_since_is_404(scene: Scene) -> None:
    pending = scene.service.immediate(ASKED)
    assert isinstance(pending, PendingDocument)
    without = Observation(backend=BACKEND, attempted=True)
    scene.publisher.current = merge({BACKEND.name: without}, generation=2)
    assert asyncio.run(scene.service.respond(pending)).status == 404
    assert not scene.documents.asked


def test_bytes_that_are_at_hand_are_answered_at_once(scene: Scene) -> None:
    scene.service._representations.put(
        scene.publisher.current.entries[APPS].key, JSON, Coding.GZIP, b"at hand"
    )
    found = scene.service.immediate(ASKED)
    assert isinstance(found, PreparedAnswer)
    assert found.body == b"at hand"


@pytest.mark.parametrize(
    ("failure", "is_down", "retry_after"),
    [
        (Failure(Cause.TIMEOUT, "silent"), True, b"7"),
        (Failure(Cause.SERVER_ERROR, "answered 503", retry_after=3.2), False, b"3"),
        (Failure(Cause.NOT_FOUND, "answered 404", status=404), False, b"7"),
    ],
)
def test_a_document_that_cannot_be_had_is_asked_for_once_and_its_backend_checked(
    scene: Scene, failure: Failure, is_down: bool, retry_after: bytes
) -> None:
    refresher: Any = Asked(failure if is_down else None)
    scene.service._refresher_of = lambda _: refresher
    scene.documents.fails = failure
    answer = asyncio.run(scene.service.respond(scene.service.immediate(ASKED)))  # type: ignore[arg-type]
    assert (answer.status, answer.route, len(scene.documents.asked)) == (503, "openapi_document", 1)
    assert b"Retry-After: " + retry_after + b"\r\n" in answer.head
    assert failure.cause.value.encode() in answer.body
    assert refresher.stirred == is_down
    (newer_than,) = refresher.newer_than
    assert (newer_than is not None) == (failure.cause is Cause.NOT_FOUND), "the root contradicts"
    scene.service._refresher_of = lambda _: None
    answer = asyncio.run(scene.service.respond(scene.service.immediate(ASKED)))  # type: ignore[arg-type]
    assert answer.status == 503


@pytest.mark.parametrize("is_at_hand", [True, False])
def test_cache_status_says_whether_a_backend_was_asked(scene: Scene, is_at_hand: bool) -> None:
    scene.documents.is_at_hand = is_at_hand
    answer = asyncio.run(scene.service.respond(scene.service.immediate(ASKED)))  # type: ignore[arg-type]
    status = b"hit" if is_at_hand else b"fwd=miss"
    assert b"Cache-Status: specmux; " + status + b"\r\n" in answer.head


def test_a_form_that_turns_out_not_to_exist_gives_way_to_the_next_that_the_client_takes(scene: Scene) -> None:
    def refuse(key: DocumentKey, media_type: MediaType) -> bool:
        if media_type == PROTOBUF:
            scene.service._representations.refuse(key, media_type, "too deep")
        return media_type == PROTOBUF

    scene.documents.refuse = refuse
    request = ASKED._replace(accept=f"{PROTOBUF}, {JSON};q=0.1")
    answer = asyncio.run(scene.service.respond(scene.service.immediate(request)))  # type: ignore[arg-type]
    assert (answer.status, answer.format, len(scene.documents.asked)) == (200, "json", 2)
    found = scene.service.immediate(ASKED._replace(accept=PROTOBUF))
    assert isinstance(found, PreparedAnswer)
    assert found.status == 406
    assert isinstance(scene.service.immediate(ASKED), PendingDocument), "the other forms exist"


@pytest.mark.parametrize(("answers", "status"), [(True, 404), (False, 503)])
def test_an_unknown_hash_is_404_only_if_all_who_may_have_it_answered(
    scene: Scene, answers: bool, status: int
) -> None:
    refresher: Any = Asked()
    refresher.answers = answers
    scene.service._refresher_of = lambda _: refresher
    request = ASKED._replace(path="/openapi/v3/apis/b/v1")
    pending = scene.service.immediate(request)
    assert not isinstance(pending, PreparedAnswer)
    answer = asyncio.run(scene.service.respond(pending))
    assert (answer.status, len(refresher.newer_than)) == (status, 1)
    assert (b"Retry-After: 1\r\n" in answer.head) == (status == 503)


def test_a_method_that_documents_lack_is_405_whoever_answers(scene: Scene) -> None:
    refresher: Any = Asked()
    refresher.answers = False
    scene.service._refresher_of = lambda _: refresher
    answer = asyncio.run(scene.service.respond(Pending(ASKED._replace(method="POST"))))
    assert (answer.status, refresher.newer_than) == (405, [])


@pytest.mark.parametrize("answers", [True, False])
def test_a_hash_that_a_check_finds_is_delivered(scene: Scene, answers: bool) -> None:
    """Another replica knew it first."""
    refresher: Any = Asked()
    refresher.answers = answers
    refresher.finds = lambda: setattr(scene.publisher, "current", snapshot("NEW", 2))
    scene.service._refresher_of = lambda _: refresher
    pending = scene.service.immediate(ASKED._replace(query="hash=NEW"))
    assert not isinstance(pending, PreparedAnswer)
    answer = asyncio.run(scene.service.respond(pending))
    assert (answer.status, answer.body, answer.is_immutable) == (200, b"NEW", True)
    assert b"Cache-Status: specmux; fwd=miss\r\n" in answer.head


def test_an_unknown_hash_redirects_without_a_check_while_the_last_one_vouches(scene: Scene) -> None:
    refresher: Any = Asked()
    scene.service._refresher_of = lambda _: refresher
    assert not isinstance(scene.service.immediate(ASKED._replace(query="hash=X")), PreparedAnswer)
    refresher.vouched_until = 60.0
    found = scene.service.immediate(ASKED._replace(query="hash=X"))
    assert isinstance(found, PreparedAnswer)
    assert (found.status, found.good_until) == (301, 60.0)


def test_a_document_that_moves_is_counted_and_its_root_read_again(scene: Scene) -> None:
    refresher: Any = Asked()
    scene.service._refresher_of = lambda _: refresher
    scene.documents.fails = MovedDocument(Hash("NEWER"))
    answer = asyncio.run(scene.service.respond(scene.service.immediate(ASKED)))  # type: ignore[arg-type]
    assert (answer.status, scene.service.moved) == (503, 1)
    assert refresher.newer_than[0] is not None
    assert b"redirected" in answer.body


def test_a_document_that_a_check_replaces_or_removes_is_decided_again(scene: Scene) -> None:
    refresher: Any = Asked()
    scene.service._refresher_of = lambda _: refresher
    scene.documents.fails = MovedDocument(Hash("NEW"))

    def replace_document() -> None:
        scene.publisher.current = snapshot("NEW", 2)
        scene.documents.fails = None

    refresher.finds = replace_document
    request = ASKED._replace(query="")
    answer = asyncio.run(scene.service.respond(scene.service.immediate(request)))  # type: ignore[arg-type]
    assert (answer.status, answer.body, scene.service.moved) == (200, b"NEW", 1)
    without = Observation(backend=BACKEND, attempted=True)
    refresher.finds = lambda: setattr(
        scene.publisher, "current", merge({BACKEND.name: without}, generation=3)
    )
    scene.documents.fails = MovedDocument(Hash("NEWER"))
    answer = asyncio.run(scene.service.respond(scene.service.immediate(request)))  # type: ignore[arg-type]
    assert answer.status == 404


def test_a_document_that_goes_as_the_last_attempt_fails_is_503(scene: Scene) -> None:
    refresher: Any = Asked()
    scene.service._refresher_of = lambda _: refresher
    scene.documents.fails = MovedDocument(Hash("NEWER"))

    def replace_document() -> None:
        offers = snapshot(f"NEW{len(refresher.newer_than)}", 2)
        is_last = len(refresher.newer_than) == services.ATTEMPTS
        without = Observation(backend=BACKEND, attempted=True)
        scene.publisher.current = merge({BACKEND.name: without}, generation=3) if is_last else offers

    refresher.finds = replace_document
    answer = asyncio.run(scene.service.respond(scene.service.immediate(ASKED._replace(query=""))))  # type: ignore[arg-type]
    assert (answer.status, scene.service.moved) == (503, services.ATTEMPTS)
    assert b"Retry-After: 1\r\n" in answer.head


async def test_an_unknown_group_version_is_looked_for_once_no_earlier_check_counts(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another replica may have checked later than this one."""
    slept: list[float] = []
    refresher: Any = Asked()
    refresher.finds = lambda: slept.append(-1.0)
    refresher.vouched_until = 50.75
    scene.service._refresher_of = lambda _: refresher
    monkeypatch.setattr(services, "time", SimpleNamespace(monotonic=lambda: 50.0))
    pending = scene.service.immediate(ASKED._replace(path="/openapi/v3/apis/b/v1"))
    assert not isinstance(pending, PreparedAnswer)
    sleep = asyncio.sleep

    def note_sleep(seconds: float) -> Any:
        slept.append(seconds)
        return sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note_sleep)
    assert (await scene.service.respond(pending)).status == 404
    assert slept == [0.75, -1.0]


def test_what_a_check_vouches_for_lasts_as_long_as_it_says(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresher: Any = Asked()
    scene.service._refresher_of = lambda _: refresher
    monkeypatch.setattr(services, "time", SimpleNamespace(monotonic=lambda: 50.0))
    assert scene.service._vouched_after_check(BACKEND.name) == 50.0
    refresher.vouched_until = 60.0
    assert scene.service._vouched_after_check(BACKEND.name) == 60.0


def test_answers_while_backends_are_looked_at_count_for_what_was_asked() -> None:
    for path, route in (("/openapi/v3", "openapi_root"), (f"/openapi/v3/{APPS}", "openapi_document")):
        answer = answer_looking(Request("GET", path), now=5.0)
        assert (answer.status, answer.route, answer.good_until) == (503, route, 5.0 + FIRST_LOOK_STEP)
        assert b"Retry-After: 1\r\n" in answer.head


def test_an_empty_list_is_not_told_while_a_backend_fails_of_which_nothing_is_known(scene: Scene) -> None:
    down = Observation(backend=BACKEND, attempted=True, failure=Failure(Cause.TIMEOUT, "silent"))
    scene.publisher.current = merge({BACKEND.name: down}, generation=2)
    found = scene.service.immediate(Request("GET", "/openapi/v3"))
    assert isinstance(found, PreparedAnswer)
    assert (found.status, found.route) == (503, "openapi_root")
    scene.publisher.current = merge({BACKEND.name: replace(down, failure=None)}, generation=3)
    pending = scene.service.immediate(Request("GET", "/openapi/v3"))
    assert isinstance(pending, PendingDocument), "nothing fails: the list is empty"
