"""Answers while something is missing: backends in the first look, discovery to be made, former documents."""

from __future__ import annotations

import asyncio
import hashlib
from base64 import b64encode
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from data.discovery_values import knowledge
from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.api_discovery.encoded_directory import DiscoveryIndex, PendingAnswer
from specmux_aggregator.api_discovery.merge import merge as merge_discovery
from specmux_aggregator.documents.representations import CodedBody, Representations
from specmux_aggregator.endpoints import service as services
from specmux_aggregator.endpoints.not_found import FIRST_LOOK_STEP
from specmux_aggregator.endpoints.routes import RouteTable
from specmux_aggregator.endpoints.service import DICTIONARY_RETRY, PARTIAL, PendingDocument, Service
from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

NOW = 50.0
APPS = GroupVersion("apis/apps/v1")
UP = Observation(
    backend=Backend(name=BackendName("up"), url="http://up"),
    offers={APPS: Offer(hash=Hash("NEW"), provenance=Provenance.NATIVE)},
    attempted=True,
)
UNTRIED = Observation(
    backend=Backend(name=BackendName("untried"), url="http://untried"),
    failure=Failure(Cause.INTERNAL, "no workers"),
)
ROOT = Request("GET", "/openapi/v3")
DOCUMENT = Request("GET", f"/openapi/v3/{APPS}", "hash=NEW")


class Look:
    """A first look that a test ends."""

    def __init__(self) -> None:
        self.pending = self.running = True
        self.asked = 0

    def is_pending(self) -> bool:
        self.asked += 1
        return self.pending

    def runs(self) -> bool:
        return self.running

    def name_missing(self) -> str:
        return "late"


class Documents:
    async def is_kept(self, key: object, media_type: object) -> bool:
        return False

    async def obtain(self, key: object, media_type: object, coding: object) -> bytes:
        return b"whole"


class Discovery:
    """Makes an answer when asked to."""

    def __init__(self, index: DiscoveryIndex) -> None:
        self.index = index
        self.generation = 10

    async def make(self, unmade: PendingAnswer) -> None:
        unmade.index.make(unmade.asked)


class Differences:
    """Deltas of one body; ``ready``: what is known at once, as of ``Deltas.find``."""

    def __init__(self, ready: bytes | None, made: bytes) -> None:
        self.ready, self.made = ready, made
        self.bodies: list[CodedBody] = []

    def find(self, *_: object) -> bytes | None:
        return self.ready

    async def make(self, key: object, media_type: object, dictionary: object, body: CodedBody) -> bytes:
        self.bodies.append(body)
        return self.made


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "time", SimpleNamespace(monotonic=lambda: NOW))


def service(*observations: Observation, **parts: Any) -> Service:
    snapshot = merge({each.backend.name: each for each in observations or (UP,)}, generation=3)
    representations = Representations(max_bytes=1000)
    representations.put(snapshot.root, JSON, Coding.IDENTITY, b"{}")
    publisher: Any = SimpleNamespace(current=snapshot)
    documents: Any = Documents()
    return Service(
        publisher,
        representations,
        documents,
        refresher_of=lambda _: None,
        routes=RouteTable([]),
        **parts,
    )


def answer_at_once(asked: Service, request: Request) -> PreparedAnswer:
    answer = asked.immediate(request)
    assert isinstance(answer, PreparedAnswer)
    return answer


def fields_of(answer: PreparedAnswer) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in answer.head.decode().split("\r\n")[1:-1])


def directory(*group_versions: str) -> DiscoveryIndex:
    return DiscoveryIndex(merge_discovery([knowledge("up", *group_versions)], now=0.0, grace=9.0))


@pytest.mark.parametrize("path", ["/openapi/v3", "/api", "/apis", "/apis/"])
def test_list_names_the_backends_that_it_lacks_until_all_have_answered(path: str) -> None:
    look = Look()
    asked = service(first_look=look, discovery=Discovery(directory("apis/apps/v1", "api/v1")))
    request = Request("GET", path)
    whole = answer_at_once(service(discovery=Discovery(directory("apis/apps/v1", "api/v1"))), request)
    assert (whole.status, whole.good_until) == (200, None)
    for status, tag in ((200, None), (304, fields_of(whole)["ETag"])):
        answer = answer_at_once(asked, request._replace(if_none_match=tag))
        assert (answer.status, fields_of(answer)[PARTIAL]) == (status, "late")
        assert answer.good_until == NOW + FIRST_LOOK_STEP
    look.pending = False
    answer = answer_at_once(asked, request)
    assert (answer.head, answer.good_until) == (whole.head, None)
    count, look.pending = look.asked, True
    assert PARTIAL not in fields_of(answer_at_once(asked, request)), "it is over for good"
    assert look.asked == count


def test_list_that_has_to_be_made_names_the_missing_backends_as_well() -> None:
    asked = service(first_look=Look())
    asked._representations.keep_only([])
    pending = asked.immediate(ROOT)
    assert isinstance(pending, PendingDocument)
    answer = asyncio.run(asked.respond(pending))
    assert (answer.status, fields_of(answer)[PARTIAL]) == (200, "late")


def test_only_lists_that_are_delivered_are_partial() -> None:
    asked = service(first_look=Look(), discovery=Discovery(directory("apis/apps/v1")))
    for request, status in (
        (Request("GET", "/apis/apps/v1"), 200),
        (ROOT._replace(method="POST"), 405),
        (Request("GET", "/version"), 404),
    ):
        answer = answer_at_once(asked, request)
        assert (answer.status, PARTIAL in fields_of(answer)) == (status, False)


def test_absent_document_is_503_while_the_first_look_runs_and_404_after() -> None:
    look = Look()
    asked = service(first_look=look)
    request = Request("GET", "/openapi/v3/apis/b/v1")
    answer = answer_at_once(asked, request)
    assert (answer.status, answer.good_until) == (503, NOW + FIRST_LOOK_STEP)
    assert answer_at_once(asked, request._replace(method="POST")).status == 405
    look.running = False
    assert answer_at_once(asked, request).status == 404
    assert answer_at_once(service(), request).status == 404


def test_empty_list_is_503_while_the_first_look_is_pending() -> None:
    look, without = Look(), replace(UP, offers={})
    assert answer_at_once(service(without, first_look=look), ROOT).status == 503
    look.pending = False
    assert answer_at_once(service(without, first_look=look), ROOT).status == 200
    known = replace(UP, failure=Failure(Cause.TIMEOUT, "silent"))
    assert answer_at_once(service(known), ROOT).status == 200


@pytest.mark.parametrize(
    ("others", "status"),
    [
        ([], 404),
        ([UNTRIED], 503),
        ([replace(UNTRIED, attempted=True)], 404),
        ([replace(UNTRIED, failure=None)], 404),
    ],
    ids=["none", "could not be tried", "failed", "due"],
)
def test_absent_group_is_503_while_a_backend_could_not_be_tried(
    others: list[Observation], status: int
) -> None:
    asked = service(UP, *others, discovery=Discovery(directory("apis/apps/v1")))
    answer = answer_at_once(asked, Request("GET", "/apis/b"))
    assert answer.status == status
    assert (answer.good_until == NOW + FIRST_LOOK_STEP) == (status == 503)
    assert answer_at_once(asked, Request("GET", "/apis/apps")).status == 200
    assert answer_at_once(asked, Request("POST", "/apis/b")).status == 405


def test_discovery_is_absent_where_it_is_off() -> None:
    answer = answer_at_once(service(), Request("GET", "/apis"))
    assert (answer.status, answer.route) == (404, "other")


def test_large_discovery_is_made_before_it_is_answered() -> None:
    index = directory(*(f"apis/g{number}/v1" for number in range(2000)))
    discovery = Discovery(index)
    asked = service(discovery=discovery)
    pending = asked.immediate(Request("GET", "/apis", accept_encoding="gzip"))
    assert not isinstance(pending, PreparedAnswer)
    answer = asyncio.run(asked.respond(pending))
    assert (answer.status, fields_of(answer)["Content-Encoding"]) == (200, "gzip")
    assert answer_at_once(asked, pending.request).body == answer.body


def test_generation_rises_with_what_answers_follow_from() -> None:
    discovery = Discovery(directory())
    asked, alone = service(discovery=discovery), service()
    seen = [asked.generation, alone.generation]
    discovery.generation += 1
    assert asked.generation > seen[0]
    for each, before in zip((asked, alone), [asked.generation, alone.generation], strict=True):
        each._representations.evicting_rounds += 1
        assert each.generation > before
        evicted = each.generation
        each._publisher.current = replace(each._publisher.current, generation=4)
        assert each.generation > evicted


def offering(request: Request, hash: str = "OLD") -> Request:
    digest = b64encode(hashlib.sha256(b"old").digest()).decode()
    return request._replace(accept_encoding="dcz, gzip", dictionary=f':{digest}: "{hash}"')


def test_client_with_a_former_document_gets_the_difference() -> None:
    asked = service(deltas=Differences(b"delta", b""))
    answer = answer_at_once(asked, offering(DOCUMENT))
    assert (answer.status, answer.body, fields_of(answer)["Content-Encoding"]) == (200, b"delta", "dcz")
    tag = fields_of(answer)["ETag"]
    assert answer_at_once(asked, offering(DOCUMENT)._replace(if_none_match=tag)).status == 304


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize(("made", "coding"), [(b"delta", "dcz"), (b"", "gzip")])
def test_difference_that_is_not_known_is_made_if_it_can_be(
    made: bytes, coding: str, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Documents, "is_kept", lambda *_: asyncio.sleep(0, is_kept))
    deltas = Differences(None, made)
    asked = service(deltas=deltas)
    entry = asked._publisher.current.entries[APPS]
    asked._representations.put(entry.key, JSON, Coding.GZIP, b"whole")
    pending = asked.immediate(offering(DOCUMENT))
    assert isinstance(pending, PendingDocument), "a difference may be had"
    answer = asyncio.run(asked.respond(pending))
    assert (answer.status, answer.body) == (200, made or b"whole")
    fields = fields_of(answer)
    assert (fields["Content-Encoding"], fields["Cache-Status"]) == (
        coding,
        "specmux; hit" if is_kept else "specmux; fwd=miss",
    )
    assert deltas.bodies == [CodedBody(Coding.GZIP, b"whole")]


@pytest.mark.parametrize("deltas", [Differences(b"", b""), None], ids=["without a difference", "off"])
def test_client_gets_the_whole_where_no_difference_is_had(deltas: Differences | None) -> None:
    asked = service(deltas=deltas)
    entry = asked._publisher.current.entries[APPS]
    asked._representations.put(entry.key, JSON, Coding.GZIP, b"whole")
    answer = answer_at_once(asked, offering(DOCUMENT))
    assert (answer.body, fields_of(answer)["Content-Encoding"]) == (b"whole", "gzip")
    # A difference may be known soon, without another generation.
    assert answer.good_until == (None if deltas is None else NOW + DICTIONARY_RETRY)


def test_dictionary_of_a_client_that_takes_no_difference_is_ignored() -> None:
    deltas = Differences(b"delta", b"delta")
    asked = service(deltas=deltas)
    request = offering(DOCUMENT)._replace(accept_encoding="gzip")
    pending = asked.immediate(request)
    assert isinstance(pending, PendingDocument)
    assert asyncio.run(asked.respond(pending)).body == b"whole"
    asked._representations.put(pending.decision.key, JSON, Coding.GZIP, b"whole")
    answer = answer_at_once(asked, request)
    assert (answer.body, answer.good_until, deltas.bodies) == (b"whole", None, [])
