"""A document whose bytes have to be found: what was decided as its request came, and what happens since."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.endpoints import service as services
from specmux_aggregator.endpoints.routes import RouteTable
from specmux_aggregator.endpoints.service import PendingDocument, Service
from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON, MediaType

APPS = GroupVersion("apis/apps/v1")
BACKEND = Backend(name=BackendName("a"), url="http://x")


def snapshot(hash: str, generation: int = 1) -> Snapshot:
    offers = {APPS: Offer(hash=Hash(hash), provenance=Provenance.NATIVE)}
    observation = Observation(backend=BACKEND, offers=offers, attempted=True)
    return merge({BACKEND.name: observation}, generation=generation)


@dataclass
class Documents:
    """Has every document, whose bytes are its hash, and says what it was asked for."""

    asked: list[tuple[Hash, MediaType, Coding]] = field(default_factory=list)

    async def is_kept(self, key: DocumentKey, media_type: MediaType) -> bool:
        return True

    async def obtain(self, key: DocumentKey, media_type: MediaType, coding: Coding) -> bytes:
        self.asked.append((key.hash, media_type, coding))
        return key.hash.encode()


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
