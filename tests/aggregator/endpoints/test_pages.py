"""The service's own pages: what they say of its state, and to whom."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import cbor2
import orjson
import pytest

from data.discovery_values import knowledge
from specmux_aggregator.aggregation.check_schedule import BackendCheck
from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.api_discovery.merge import merge as merge_discovery
from specmux_aggregator.documents.representations import Usage
from specmux_aggregator.endpoints import health
from specmux_aggregator.endpoints.health import Pages, SharedBody
from specmux_aggregator.endpoints.status import ServiceReport, document_checks_json, status_json
from specmux_aggregator.http.messages import Request
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName, ClusterFacts
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.server_union import BackendServer, difference_text
from specmux_aggregator.model.snapshot import CheckSummary, DocumentKey, PublishedCheck
from specmux_converters.group_versions import GroupVersion

KEY = GroupVersion("apis/a/v1")
UP = Observation(
    backend=Backend(name=BackendName("up"), url="http://up", priority=3),
    offers={KEY: Offer(hash=Hash("A"), provenance=Provenance.NATIVE, size=7)},
    attempted=True,
    dialect=BackendKind.V3,
    changed_at=89.99949,
    notes=("a note",),
)
PENDING = Observation(backend=Backend(name=BackendName("pending"), url="http://pending"))
DOWN = replace(
    UP,
    backend=Backend(name=BackendName("down"), url="http://down"),
    failure=Failure(Cause.REFUSED, "connection refused"),
)
USAGE = Usage(bytes=5, pinned_bytes=4, documents=3, forms=2, evictions=1, sheddings=0)


class Bench:
    """Pages over a state that a test changes."""

    def __init__(self, *observations: Observation) -> None:
        self.cluster: Any = None
        self.discovery: Any = None
        self.checks: Any = None
        self.sets = SimpleNamespace(is_settled=True, problems=("b: left out",))
        self.built: list[str] = []
        self.complaint: str | None = None
        self.made = 0
        self.publisher = SimpleNamespace(current=None)
        self.see(*observations)

    def see(self, *observations: Observation) -> None:
        self.publisher.current = merge({each.backend.name: each for each in observations}, generation=2)

    def pages(self) -> Pages:
        state: Any = SimpleNamespace(
            publisher=self.publisher,
            representations=SimpleNamespace(usage=lambda: USAGE),
            backends=SimpleNamespace(checks=lambda: [(UP, BackendCheck(succeeded_at=1.0))]),
            backend_sets=self.sets,
            cluster=self.cluster,
            discovery=self.discovery,
            document_checks=self.checks,
            config=SimpleNamespace(error="line 3"),
            first_look=SimpleNamespace(unbuilt=lambda: self.built),
            unread=lambda: {KEY: "too large"},
        )
        readers = SimpleNamespace(report=lambda: {"readers": 1})
        metrics: Any = SimpleNamespace(swagger_readers=readers, exposition=lambda: b"up 1\n")
        return Pages(state, metrics, auth_complaint=lambda: self.complaint)


async def ask(pages: Pages, path: str, **fields: Any) -> tuple[int, dict[str, str], bytes]:
    (route,) = (each for each in pages.routes() if each.path == path)
    method = fields.pop("method", "GET")
    answer = await route.endpoint.respond(Request(method, path, **fields))  # type: ignore[union-attr]
    return (
        answer.status,
        dict(line.split(": ", 1) for line in answer.head.decode().split("\r\n")[1:-1]),
        answer.body,
    )


async def readiness(pages: Pages) -> tuple[int, str]:
    status, fields, body = await ask(pages, "/readyz")
    assert ("Retry-After" in fields) == (status == 503)
    return status, body.decode()


async def test_readiness_names_what_it_waits_for_and_once_given_stays() -> None:
    bench = Bench(PENDING)
    pages = bench.pages()
    assert await readiness(pages) == (503, "waiting for the first answer of: pending\n")
    bench.see(replace(PENDING, failure=Failure(Cause.INTERNAL, "no workers")), UP)
    assert await readiness(pages) == (503, "waiting for the first answer of: pending\nno workers\n")
    bench.see(UP, DOWN)
    bench.built = ["down"]
    assert await readiness(pages) == (503, "waiting for the first answer of: down\n")
    bench.built = []
    bench.sets.is_settled = False
    assert await readiness(pages) == (503, "waiting for the first answer of: the configuration\n")
    bench.sets.is_settled = True
    assert await readiness(pages) == (200, "ok\n")
    bench.see(PENDING)
    assert await readiness(pages) == (200, "ok\n")
    bench.complaint = "no reviews"
    assert await readiness(pages) == (503, "nobody can be let in: no reviews\n")
    assert (await ask(pages, "/livez"))[::2] == (200, b"ok\n")


async def test_readiness_waits_for_the_watches_and_the_discovery_of_a_cluster() -> None:
    bench = Bench(UP)
    bench.cluster = SimpleNamespace(pending=["APIServices"], status=lambda: {"x": 1})
    bench.sets.is_settled = False
    knowledge = SimpleNamespace(backend=UP.backend, attempted=False)
    known = SimpleNamespace(backend=DOWN.backend, attempted=True)
    followers = [SimpleNamespace(knowledge=each) for each in (knowledge, known)]
    index = SimpleNamespace(is_complete=False)
    bench.discovery = SimpleNamespace(index=index, followers=lambda: followers)
    pages = bench.pages()
    assert await readiness(pages) == (503, "waiting for the first answer of: the watch of APIServices\n")
    bench.cluster.pending = []
    bench.sets.is_settled = True
    assert await readiness(pages) == (503, "waiting for the first answer of: up\n")
    index.is_complete = True
    assert await readiness(pages) == (200, "ok\n")


async def test_pages_speak_to_browsers_and_to_programs() -> None:
    bench = Bench(UP)
    pages = bench.pages()
    status, fields, body = await ask(pages, "/")
    index = orjson.loads(body)
    assert (status, fields["Content-Type"], index["name"]) == (200, "application/json", "specmux")
    assert "/apis" not in index["paths"] and index["paths"] == sorted(index["paths"])
    assert {"/livez", "/readyz", "/status", "/metrics", "/openapi/v3"} < set(index["paths"])
    assert body.startswith(b'{\n  "') and body.endswith(b"}\n"), "people read it"
    for path, page in (("/", "openapi/ui/"), ("/status", "openapi/ui/status")):
        status, fields, _ = await ask(pages, path, accept="text/html,*/*")
        assert (status, fields["Location"], fields["Vary"]) == (302, page, "Accept")
    status, fields, body = await ask(pages, "/status", accept="application/json")
    report = orjson.loads(body)
    assert (status, report["config"], report["sources"]) == (
        200,
        {"error": "line 3"},
        {"leftOut": ["b: left out"]},
    )
    assert (report["ready"], report["generation"], report["discovery"]) == (True, 2, None)
    assert (report["openapiV2"], report["reader"]) == ({"readers": 1}, {"refused": {KEY: "too large"}})
    status, fields, body = await ask(pages, "/status", accept="application/cbor")
    assert (status, fields["Content-Type"]) == (200, "application/cbor")
    assert cbor2.loads(body)["config"] == report["config"]
    assert (await ask(pages, "/metrics"))[::2] == (200, b"up 1\n")
    bench.discovery = SimpleNamespace()
    assert "/apis" in orjson.loads((await ask(bench.pages(), "/"))[2])["paths"]


@pytest.mark.parametrize(
    ("path", "accept"), [("/livez", None), ("/readyz", None), ("/status", "application/cbor"), ("/", None)]
)
async def test_head_of_a_page_has_the_length_of_get_and_no_body(path: str, accept: str | None) -> None:
    pages = Bench(UP).pages()
    asked = await ask(pages, path, accept=accept)
    status, fields, body = await ask(pages, path, accept=accept, method="HEAD")
    assert (status, fields, body) == (*asked[:2], b"")
    assert int(fields["Content-Length"]) == len(asked[2]) > 0


async def test_status_reports_the_cluster_the_discovery_and_the_checks_of_documents() -> None:
    bench = Bench(UP)
    bench.cluster = SimpleNamespace(pending=[], status=lambda: {"watches": 2})
    known = knowledge("up", "apis/a/v1", "apis/b/v1")
    bench.discovery = SimpleNamespace(
        index=SimpleNamespace(is_complete=True, directory=merge_discovery([known], now=0.0, grace=9.0)),
        followers=lambda: [SimpleNamespace(knowledge=known, told_at=None)],
    )
    unsound = PublishedCheck(DocumentKey(UP.backend.name, KEY, Hash("A")), None, "too slow")
    bench.checks = SimpleNamespace(known={KEY: unsound}, waiting=4)
    report = orjson.loads((await ask(bench.pages(), "/status"))[2])
    assert report["sources"]["kubernetes"] == {"watches": 2}
    assert report["discovery"]["backends"]["up"] | {"notes": []} == {
        "form": "aggregated",
        "state": "up",
        "groupVersions": 2,
        "lastSuccessAgeSeconds": None,
        "error": None,
        "notes": [],
    }
    assert report["discovery"]["withoutOpenAPI"] == ["apis/b/v1"]
    assert report["documentChecks"] == {
        "checked": 1,
        "waiting": 4,
        "findings": {KEY: {"notChecked": "too slow"}},
    }


async def test_a_large_body_is_made_once_a_second_and_a_small_one_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(health, "time", SimpleNamespace(monotonic=lambda: now))
    bodies = [bytes(health.LARGE), b"small", b"other"]
    shared = SharedBody(lambda: asyncio.sleep(0, bodies.pop(0)))
    assert len(await shared.get()) == health.LARGE
    now += health.KEPT / 2
    assert len(await shared.get()) == health.LARGE
    now += health.KEPT / 2
    assert await shared.get() == b"small"
    assert await shared.get() == b"other"


def test_status_says_of_each_backend_how_it_is() -> None:
    closed = replace(
        DOWN,
        backend=Backend(name=BackendName("closed"), url="http://c", found=ClusterFacts()),
        failure=Failure(Cause.CREDENTIALS, "answered 403", status=403),
    )
    observations = (UP, PENDING, DOWN, closed)
    check = BackendCheck(succeeded_at=98.49949, failures=2, next_delay=1.23456)
    service = ServiceReport("1", {}, {"kubernetes": {}}, (), True, None, {})
    snapshot = merge({each.backend.name: each for each in observations}, generation=3)
    found = orjson.loads(
        status_json(snapshot, [(each, check) for each in observations], USAGE, service, now=100.0)
    )
    assert {name: each["state"] for name, each in found["backends"].items()} == {
        "up": "up",
        "pending": "pending",
        "down": "failed",
        "closed": "closed",
    }
    up = found["backends"]["up"]
    assert (up["kind"], up["speaks"], up["priority"], up["groupVersions"]) == ("auto", "v3", 3, 1)
    assert (up["lastSuccessAgeSeconds"], up["lastChangeAgeSeconds"]) == (1.501, 10.001)
    assert (up["failedChecks"], up["nextCheckSeconds"], up["error"], up["notes"]) == (
        2,
        1.235,
        None,
        ["a note"],
    )
    assert found["backends"]["down"]["error"] == {"cause": "refused", "detail": "connection refused"}
    assert (found["ready"], found["memory"]["pinnedBytes"]) == (False, 4)
    assert found["groupVersions"][KEY] | {"lossExamples": []} == {
        "owner": "up",
        "hash": "A",
        "provenance": "native",
        "bytes": 7,
        "stale": False,
        "losses": 0,
        "lossExamples": [],
    }
    assert found["conflicts"] == [{"groupVersion": KEY, "winner": "up", "losers": ["down"]}]


def test_status_says_of_each_server_behind_an_address_how_it_is() -> None:
    servers = (
        BackendServer("1", {KEY: Hash("A")}, "v1.36.2"),
        BackendServer("2", {}, "v1.35.0", Failure(Cause.TIMEOUT, "silent")),
    )
    check = BackendCheck()
    service = ServiceReport("1", {}, {}, (), True, None, {})
    checks = [(replace(UP, servers=servers), check), (PENDING, check)]
    status = status_json(merge({}, generation=1), checks, USAGE, service, now=100.0)
    assert status.startswith(b'{\n  "') and status.endswith(b"}\n"), "people read it"
    found = orjson.loads(status)["backends"]
    assert found["pending"]["servers"] is None
    assert found["up"]["servers"]["servers"] == [
        {"name": "1", "version": "v1.36.2", "groupVersions": 1, "state": "up", "error": None},
        {
            "name": "2",
            "version": "v1.35.0",
            "groupVersions": 0,
            "state": "failed",
            "error": {"cause": "timeout", "detail": "silent"},
        },
    ]
    assert found["up"]["servers"]["summary"] == difference_text(servers)


@pytest.mark.parametrize(("is_settled", "is_tried"), [(True, True), (True, False), (False, True)])
def test_status_is_ready_once_all_backends_are_known_and_tried(is_settled: bool, is_tried: bool) -> None:
    service = ServiceReport("1", {}, {}, (), is_settled, None, {})
    observations = (UP,) if is_tried else (UP, PENDING)
    snapshot = merge({each.backend.name: each for each in observations}, generation=1)
    found = orjson.loads(status_json(snapshot, [], USAGE, service, now=1.0))
    assert found["ready"] == (is_settled and is_tried)


def test_status_names_documents_with_findings_alone() -> None:
    def checked(name: str, summary: CheckSummary | None) -> tuple[GroupVersion, PublishedCheck]:
        key = GroupVersion(name)
        return key, PublishedCheck(DocumentKey(BackendName("b"), key, Hash("A")), summary, "too slow")

    checks = dict(
        [
            checked("warned", CheckSummary(0, 1, ("w",))),
            checked("sound", CheckSummary(0, 0, ())),
            checked("never", None),
        ]
    )
    assert document_checks_json(checks, waiting=4) == {
        "checked": 3,
        "waiting": 4,
        "findings": {
            "never": {"notChecked": "too slow"},
            "warned": {"errors": 0, "warnings": 1, "examples": ["w"]},
        },
    }
