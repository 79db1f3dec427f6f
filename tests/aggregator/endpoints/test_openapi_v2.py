"""The endpoint of the merged document over a worker of a test: what is made, kept and left out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from multidict import CIMultiDict

from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.endpoints import openapi_v2
from specmux_aggregator.endpoints.openapi_v2 import RETRY, ROUNDS, MergedSwagger, SwaggerReads
from specmux_aggregator.errors import TookTooLong, WorkerFailed
from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, prepare
from specmux_aggregator.metrics.swagger_readers import SwaggerReaders
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.snapshot import DocumentKey
from specmux_aggregator.server.protocols import Pending
from specmux_aggregator.workers.built import NeededDocuments, SwaggerForm, Unencodable
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON, PROTOBUF_V2, MediaType

BACKEND = Backend(name=BackendName("a"), url="http://a")
GET = Request("GET", "/openapi/v2")


class Worker:
    """Merges names: needs the documents first, as after each start, and leaves out what it cannot express."""

    def __init__(self) -> None:
        self.calls = 0
        self.ends = 0
        self.unfit: dict[MediaType, str] = {}
        self.result: Callable[[], object] | None = None
        self._known: set[DocumentKey] = set()

    async def run(
        self,
        function: object,
        keys: Sequence[DocumentKey],
        documents: Sequence[tuple[DocumentKey, bytes]],
        *,
        media_type: MediaType,
        coding: Coding,
        limits: Limits,
    ) -> object:
        self.calls += 1
        if self.result is not None:
            return self.result()
        self._known |= {key for key, _ in documents}
        if lacking := tuple(key for key in keys if key not in self._known):
            return NeededDocuments(lacking)
        unfit = tuple(key for key in keys if key.group_version == self.unfit.get(media_type))
        names = " ".join(key.group_version for key in keys if key not in unfit)
        return SwaggerForm(f"{coding.value}:{names}".encode(), (), unfit)

    def end_idle(self) -> None:
        self.ends += 1


class Documents:
    def __init__(self) -> None:
        self.lost: set[str] = set()
        self.asked: list[str] = []

    async def obtain(self, key: DocumentKey, media_type: MediaType, coding: Coding) -> bytes | Failure:
        assert (media_type, coding) == (JSON, Coding.IDENTITY)
        self.asked.append(key.group_version)
        return Failure(Cause.TIMEOUT, "silent") if key.group_version in self.lost else b"{}"


class Bench:
    def __init__(self, **settings: Any) -> None:
        self.worker, self.documents = Worker(), Documents()
        self.representations = Representations(max_bytes=10_000)
        self.is_looking = False
        self.publish("a", "b")
        worker: Any = self.worker
        documents: Any = self.documents
        self.swagger = MergedSwagger(
            lambda: self.snapshot,
            documents,
            self.representations,
            worker,
            limits=Limits(),
            is_private=settings.get("is_private", False),
            is_looking=lambda: self.is_looking,
        )

    def publish(self, *names: str, hash: str = "A", generation: int = 1) -> None:
        offers = {GroupVersion(name): Offer(hash=Hash(hash), provenance=Provenance.NATIVE) for name in names}
        observation = Observation(backend=BACKEND, offers=offers, attempted=True)
        self.snapshot = merge({BACKEND.name: observation}, generation=generation)

    def ask(self, request: Request = GET) -> PreparedAnswer:
        return asyncio.run(self.swagger.respond(request))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def fields_of(answer: PreparedAnswer) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in answer.head.decode().split("\r\n")[1:-1])


def test_document_is_made_once_and_then_at_hand(bench: Bench) -> None:
    assert bench.swagger.immediate(GET) is None
    made = bench.ask()
    assert (made.status, made.body, made.route, made.format) == (200, b"identity:a b", "openapi_v2", "json")
    assert "Warning" not in fields_of(made)
    for answer in (bench.ask(), bench.swagger.immediate(GET)):
        assert answer is not None
        assert (answer.head, answer.body) == (made.head, made.body)
    tag = fields_of(made)["ETag"]
    unchanged = bench.swagger.immediate(GET._replace(if_none_match=tag))
    assert unchanged is not None
    assert (unchanged.status, bench.swagger.made, bench.documents.asked) == (304, 1, ["a", "b"])
    head = bench.ask(GET._replace(method="HEAD"))
    assert (head.body, fields_of(head)["Content-Length"]) == (b"", str(len(made.body)))


def test_each_form_is_made_and_tagged_by_itself(bench: Bench) -> None:
    tags = set()
    for accept in (JSON, PROTOBUF_V2):
        for coding in (Coding.IDENTITY, Coding.GZIP):
            answer = bench.ask(GET._replace(accept=accept, accept_encoding=coding.value))
            assert answer.body == f"{coding.value}:a b".encode()
            tags.add(fields_of(answer)["ETag"])
    assert (len(tags), bench.swagger.made) == (4, 4)
    assert len(bench.documents.asked) == 2, "the process keeps the documents"


def test_form_that_does_not_exist_is_406(bench: Bench) -> None:
    request = GET._replace(accept="text/html")
    at_once = bench.swagger.immediate(request)
    for answer in (at_once, bench.ask(request)):
        assert answer is not None
        assert (answer.status, answer.route) == (406, "openapi_v2")
    assert bench.worker.calls == 0


@pytest.mark.parametrize(("is_private", "expected"), [(True, "private, no-cache"), (False, "no-cache")])
def test_document_is_private_where_access_is_restricted(is_private: bool, expected: str) -> None:
    assert fields_of(Bench(is_private=is_private).ask())["Cache-Control"] == expected


def test_document_is_503_while_backends_are_looked_at(bench: Bench) -> None:
    bench.is_looking = True
    assert bench.swagger.immediate(GET) is None
    answer = bench.ask()
    assert (answer.status, answer.route, fields_of(answer)["Retry-After"]) == (503, "openapi_v2", "1")
    assert bench.worker.calls == 0
    bench.is_looking = False
    assert bench.ask().status == 200


def test_tag_follows_from_the_documents_alone(bench: Bench) -> None:
    first = fields_of(bench.ask())["ETag"]
    bench.publish("a", "b", generation=2)
    assert fields_of(bench.ask())["ETag"] == first
    assert bench.swagger.made == 1
    bench.publish("a", "b", hash="B", generation=3)
    assert fields_of(bench.ask())["ETag"] != first
    assert bench.swagger.made == 2


def test_document_that_cannot_be_had_is_left_out_for_a_while(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 50.0
    monkeypatch.setattr(openapi_v2, "time", SimpleNamespace(monotonic=lambda: now))
    bench.documents.lost = {"b"}
    partial = bench.ask()
    assert (partial.status, partial.body) == (200, b"identity:a")
    assert fields_of(partial)["Warning"] == '199 - "without 1 documents that cannot be had"'
    tag = fields_of(partial)["ETag"]
    again = bench.swagger.immediate(GET)
    assert again is not None
    assert (again.head, again.body) == (partial.head, partial.body)
    unchanged = bench.swagger.immediate(GET._replace(if_none_match=tag))
    assert unchanged is not None
    assert unchanged.status == 304
    coded = bench.ask(GET._replace(accept=PROTOBUF_V2, accept_encoding="gzip"))
    assert (coded.body, fields_of(coded)["Warning"]) == (b"gzip:a", fields_of(partial)["Warning"])
    assert bench.documents.asked.count("b") == 1, "for all forms"
    bench.documents.lost = set()
    now += RETRY
    whole = bench.ask()
    assert (whole.body, "Warning" in fields_of(whole)) == (b"identity:a b", False)
    assert fields_of(whole)["ETag"] != tag
    at_once = bench.swagger.immediate(GET)
    assert at_once is not None
    assert at_once.body == whole.body


def test_document_that_has_no_place_in_one_form_is_in_the_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 50.0
    monkeypatch.setattr(openapi_v2, "time", SimpleNamespace(monotonic=lambda: now))
    bench.worker.unfit = {PROTOBUF_V2: "b"}
    lossy, whole = bench.ask(GET._replace(accept=PROTOBUF_V2)), bench.ask()
    assert (lossy.body, whole.body) == (b"identity:a", b"identity:a b")
    assert ("Warning" in fields_of(lossy), "Warning" in fields_of(whole)) == (True, False)
    now += 10 * RETRY
    calls = bench.worker.calls
    again = bench.swagger.immediate(GET._replace(accept=PROTOBUF_V2))
    assert again is not None, "asking again would not help"
    assert (again.body, bench.worker.calls) == (lossy.body, calls)
    bench.publish("a", "c", generation=2)
    assert bench.ask(GET._replace(accept=PROTOBUF_V2)).body == b"identity:a c"


@pytest.mark.parametrize(
    "reason", [Unencodable("too deep"), TookTooLong(3.0)], ids=["cannot be merged", "took too long"]
)
def test_document_that_cannot_be_made_is_503_with_the_reason(
    bench: Bench, reason: Unencodable | WorkerFailed
) -> None:
    def fail() -> object:
        if isinstance(reason, WorkerFailed):
            raise reason
        return reason

    bench.worker.result = fail
    answer = bench.ask()
    assert (answer.status, fields_of(answer)["Retry-After"], bench.worker.calls) == (503, "1", 1)
    words = reason.reason if isinstance(reason, Unencodable) else str(reason)
    assert words in orjson.loads(answer.body)["message"]
    bench.worker.result = None
    assert bench.ask().status == 200


def test_process_that_forgets_its_documents_is_given_them_so_many_times(bench: Bench) -> None:
    bench.worker.result = lambda: NeededDocuments(
        tuple(entry.key for entry in bench.snapshot.entries.values())
    )
    answer = bench.ask()
    assert (answer.status, bench.worker.calls) == (503, ROUNDS)
    assert "change faster" in orjson.loads(answer.body)["message"]


def test_process_ends_where_memory_is_short_once_it_has_made_something(bench: Bench) -> None:
    bench.swagger.forget()
    assert bench.worker.ends == 0
    bench.ask()
    bench.swagger.forget()
    assert bench.worker.ends == 1


async def test_close_ends_what_is_being_made(bench: Bench) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hang(*_: object, **__: object) -> object:
        begun.set()
        try:
            return await asyncio.Event().wait()
        finally:
            ended.set()

    bench.worker.run = hang  # type: ignore[method-assign]
    asking = asyncio.create_task(bench.swagger.respond(GET))
    await begun.wait()
    await bench.swagger.close()
    assert ended.is_set()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


def message(method: str, path: str, **headers: str) -> Any:
    url = SimpleNamespace(absolute=False, scheme="")
    fields = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
    return SimpleNamespace(method=method, path=path, url=url, headers=fields)


@pytest.mark.parametrize(
    ("method", "path", "is_read"),
    [
        ("GET", "/openapi/v2", True),
        ("HEAD", "/openapi/v2?timeout=32s", True),
        ("POST", "/openapi/v2", False),
        ("GET", "/openapi/v2/", False),
        ("GET", "/openapi/v3?/openapi/v2", False),
    ],
)
def test_reads_of_the_merged_document_are_claimed(method: str, path: str, is_read: bool) -> None:
    parts: Any = SimpleNamespace()
    assert SwaggerReads(parts, parts).claims(message(method, path)) == is_read


@pytest.mark.parametrize("is_at_hand", [True, False])
async def test_reads_are_counted_whoever_answers(is_at_hand: bool) -> None:
    answer = prepare(200, [], b"{}")
    asked: list[Pending] = []

    async def respond(pending: Pending) -> PreparedAnswer:
        asked.append(pending)
        return answer

    service: Any = SimpleNamespace(
        immediate=lambda request: answer if is_at_hand else Pending(request), respond=respond
    )
    readers = SwaggerReaders()
    read = message("GET", "/openapi/v2?a=1", Accept=PROTOBUF_V2, User_Agent="kubectl/v1.32")
    reply = await SwaggerReads(service, readers).stream(SimpleNamespace(message=read))  # type: ignore[arg-type]
    assert reply.prepared is answer
    assert [each.request.path for each in asked] == ([] if is_at_hand else ["/openapi/v2"])
    assert readers.report()["products"] == {"kubectl": {"protobuf": 1}}
