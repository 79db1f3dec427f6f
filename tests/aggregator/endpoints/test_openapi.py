"""The HTTP contract of spec/http.md, row by row, without a socket."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.endpoints.not_found import answer_unavailable
from specmux_aggregator.endpoints.openapi import HASH_MAX, Decision, Deliver, Revalidate, decide
from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, deliver
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.server_union import BackendServer
from specmux_aggregator.model.snapshot import Snapshot
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import CBOR, JSON, PROTOBUF

APPS = GroupVersion("apis/apps/v1")
PATH = f"/openapi/v3/{APPS}"
BACKEND = Backend(name=BackendName("a"), url="http://x")


def snapshot(current: str = "CURRENT") -> Snapshot:
    offers = {APPS: Offer(hash=Hash(current), provenance=Provenance.NATIVE)}
    observation = Observation(backend=BACKEND, offers=offers, attempted=True)
    return merge({BACKEND.name: observation}, generation=1)


def answer(path: str = PATH, query: str = "", method: str = "GET", **fields: str) -> Decision:
    decision = decide(snapshot(), Request(method, path, query, **fields), vouched_until=lambda _: 1.0)  # type: ignore[arg-type]
    assert decision is not None
    return decision


def fields_of(prepared: PreparedAnswer) -> dict[str, str]:
    lines = prepared.head.decode().split("\r\n")[1:-1]
    return dict(line.split(": ", 1) for line in lines)


def served(decision: Decision, body: bytes = b"{}") -> dict[str, str]:
    assert isinstance(decision, Deliver)
    return fields_of(deliver(decision.representation, body))


def refused(decision: Decision, code: int, reason: str) -> dict[str, str]:
    assert isinstance(decision, PreparedAnswer)
    assert decision.status == code
    status = orjson.loads(decision.body)
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert (status["reason"], status["code"]) == (reason, code)
    return fields_of(decision)


def test_right_hash_is_immutable() -> None:
    decision = answer(query="hash=CURRENT")
    assert isinstance(decision, Deliver)
    assert decision.representation.is_immutable
    fields = served(decision)
    assert fields["Cache-Control"] == "public, max-age=31536000, immutable"
    assert fields["Vary"] == "Accept, Accept-Encoding"
    assert fields["ETag"] == '"CURRENT"'
    assert fields["Content-Length"] == "2"


def test_no_hash_is_revalidated() -> None:
    decision = answer()
    assert isinstance(decision, Deliver)
    assert not decision.representation.is_immutable
    assert served(decision)["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    ("query", "location"),
    [
        ("hash=OLD", "?hash=CURRENT&redirected=1"),
        ("hash=OLD&timeout=32s", "?hash=CURRENT&timeout=32s&redirected=1"),
        ("timeout=32s&etag=OLD", "?timeout=32s&etag=CURRENT&redirected=1"),
        ("hash=current", "?hash=CURRENT&redirected=1"),
    ],
)
def test_stale_hash_redirects_relatively_and_keeps_the_query(query: str, location: str) -> None:
    decision = answer(query=query, if_none_match='"CURRENT"')
    assert isinstance(decision, PreparedAnswer)
    assert decision.status == 301
    assert fields_of(decision) == {"Location": location, "Cache-Control": "no-store", "Content-Length": "0"}
    assert decision.good_until == 1.0


@pytest.mark.parametrize("query", ["hash=OLD&redirected=1", "redirected=1&etag=OLD", "hash=OLD&redirected"])
def test_client_that_was_redirected_gets_what_is_current(query: str) -> None:
    decision = answer(query=query)
    assert isinstance(decision, Deliver)
    fields = served(decision)
    assert (fields["Cache-Control"], fields["ETag"]) == ("no-cache", '"CURRENT"')
    asked = decide(snapshot(), Request("GET", PATH, query), vouched_until=lambda _: None)
    assert asked == Revalidate((BACKEND.name,))
    current = answer(query=query.replace("OLD", "CURRENT"))
    assert isinstance(current, Deliver)
    assert served(current)["Cache-Control"] == "public, max-age=31536000, immutable"


@given(
    st.lists(st.sampled_from("ABC"), min_size=2, max_size=4),
    st.lists(st.integers(0, 3), min_size=6, max_size=12),
    st.sampled_from(["hash={}", "etag={}&timeout=32s"]),
)
def test_no_redirect_follows_another_whatever_replicas_know(
    known: list[str], balancer: list[int], form: str
) -> None:
    """Replicas that each know one hash, and a client that reaches one of them after the other."""
    replicas = [snapshot(name) for name in known]
    query, redirects = form.format(known[0]), 0
    for turn in balancer:
        asked = Request("GET", PATH, query)
        decision = decide(replicas[turn % len(replicas)], asked, vouched_until=lambda _: 1.0)
        if isinstance(decision, Deliver):
            break
        assert isinstance(decision, PreparedAnswer)
        redirects += 1
        query = fields_of(decision)["Location"].removeprefix("?")
    assert redirects <= 1


def test_unknown_hash_asks_the_owner_first_when_nobody_vouches() -> None:
    decision = decide(snapshot(), Request("GET", PATH, "hash=OLD"), vouched_until=lambda _: None)
    assert decision == Revalidate((BACKEND.name,))


@pytest.mark.parametrize("query", ["hash=", "hash=A&hash=B", "hash=A&etag=A", "hash=" + "A" * 65_536])
def test_hash_that_is_none_is_a_bad_request(query: str) -> None:
    refused(answer(query=query), 400, "BadRequest")


def test_hash_of_the_greatest_length_is_one() -> None:
    refused(answer(query="hash=" + "A" * (HASH_MAX + 1)), 400, "BadRequest")
    decision = answer(query="hash=" + "A" * HASH_MAX)
    assert isinstance(decision, PreparedAnswer)
    assert decision.status == 301


@pytest.mark.parametrize(
    "field", ['"CURRENT"', 'W/"CURRENT"', '"x", "CURRENT"', '"x" ,W/"CURRENT"', "*", 'W/"CURRENT", "x"']
)
def test_matching_etag_is_304_without_content_fields(field: str) -> None:
    decision = answer(query="hash=CURRENT", if_none_match=field)
    assert isinstance(decision, PreparedAnswer)
    assert decision.status == 304
    assert decision.is_immutable
    assert decision.body == b""
    assert fields_of(decision) == {
        "Cache-Control": "public, max-age=31536000, immutable",
        "ETag": '"CURRENT"',
        "Vary": "Accept, Accept-Encoding",
        "Cache-Status": "specmux; hit",
    }


@pytest.mark.parametrize("field", ['"x"', "CURRENT", '"CURRENT-gzip"', '"current"', ""])
def test_other_etag_is_served_in_full(field: str) -> None:
    assert isinstance(answer(query="hash=CURRENT", if_none_match=field), Deliver)


@pytest.mark.parametrize("etag", [None, '"CURRENT"'])
def test_with_authentication_only_the_client_may_keep_an_answer(etag: str | None) -> None:
    for path, query, expected in (
        (PATH, "hash=CURRENT", "private, max-age=31536000, immutable"),
        (PATH, "", "private, no-cache"),
        ("/openapi/v3", "", "private, no-cache"),
    ):
        request = Request("GET", path, query, if_none_match=etag)
        decision = decide(snapshot(), request, is_private=True, vouched_until=lambda _: 1.0)
        prepared = deliver(decision.representation, b"{}") if isinstance(decision, Deliver) else decision
        assert isinstance(prepared, PreparedAnswer)
        assert fields_of(prepared)["Cache-Control"] == expected
        assert not prepared.is_immutable, "Expires would let a cache of HTTP/1.0 keep it"


def test_every_form_has_an_etag_of_its_own() -> None:
    tags = {
        served(answer(accept=media_type, accept_encoding=coding))["ETag"]
        for media_type in (JSON, PROTOBUF, CBOR)
        for coding in ("identity", "gzip", "zstd")
    }
    assert len(tags) == 9


def test_etag_of_one_form_is_no_match_for_another() -> None:
    json_tag = served(answer())["ETag"]
    assert isinstance(answer(accept=PROTOBUF, if_none_match=json_tag), Deliver)
    assert isinstance(answer(accept_encoding="gzip", if_none_match=json_tag), Deliver)


def test_if_match_of_another_representation_is_412() -> None:
    refused(answer(if_match='"x"'), 412, "PreconditionFailed")
    refused(answer(if_match='W/"CURRENT"'), 412, "PreconditionFailed")
    assert isinstance(answer(if_match='"x", "CURRENT"'), Deliver)


def test_coding_is_named_where_there_is_one() -> None:
    assert served(answer(accept_encoding="gzip"))["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in served(answer())


def test_head_has_the_length_of_get_and_no_body() -> None:
    decision = answer(method="HEAD")
    assert isinstance(decision, Deliver)
    prepared = deliver(decision.representation, b"x" * 10)
    assert (prepared.body, fields_of(prepared)["Content-Length"]) == (b"", "10")


@pytest.mark.parametrize(
    "path",
    [
        "/openapi/v3/apis/nope/v1",
        "/openapi/v3/",
        f"{PATH}/",
        "/openapi/v3//apis/apps/v1",
        "/openapi/v3/apis%2Fapps%2Fv1",
        "/openapi/v3/../v3/apis/apps/v1",
        "/openapi/v3/APIS/APPS/V1",
    ],
)
def test_unknown_group_version_is_404(path: str) -> None:
    refused(answer(path), 404, "NotFound")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
@pytest.mark.parametrize("path", ["/openapi/v3", PATH])
def test_other_methods_are_405(method: str, path: str) -> None:
    assert refused(answer(path, method=method), 405, "MethodNotAllowed")["Allow"] == "GET, HEAD"


def test_no_acceptable_media_type_is_406_that_lists_what_there_is() -> None:
    decision = answer(accept="text/html")
    refused(decision, 406, "NotAcceptable")
    assert isinstance(decision, PreparedAnswer)
    assert all(media_type in decision.body.decode() for media_type in (JSON, PROTOBUF, CBOR))


def test_form_that_does_not_exist_is_406_alone() -> None:
    request = Request("GET", PATH, accept=PROTOBUF)
    decision = decide(snapshot(), request, offered=lambda _: (JSON, CBOR))
    assert decision is not None
    refused(decision, 406, "NotAcceptable")
    both = decide(
        snapshot(), Request("GET", PATH, accept=f"{PROTOBUF}, {JSON};q=0.1"), offered=lambda _: (JSON, CBOR)
    )
    assert isinstance(both, Deliver)
    assert both.media_type == JSON


def test_document_without_a_backend_is_503_with_retry_after() -> None:
    prepared = answer_unavailable(
        Failure(Cause.REFUSED, "secret detail"), Request("GET", PATH), retry_after=7.4
    )
    fields = refused(prepared, 503, "ServiceUnavailable")
    assert fields["Retry-After"] == "7"
    assert b"secret" not in prepared.body


def test_group_version_that_a_failing_backend_owns_is_503_not_404() -> None:
    owned = Backend(name=BackendName("b"), url="http://y", group_versions=frozenset({APPS}))
    failing = Observation(backend=owned, attempted=True, failure=Failure(Cause.REFUSED, ""))
    state = merge({owned.name: failing}, generation=1)
    decision = decide(state, Request("GET", PATH))
    assert decision is not None
    refused(decision, 503, "ServiceUnavailable")
    other = decide(state, Request("GET", "/openapi/v3/apis/batch/v1"))
    assert other is not None
    refused(other, 404, "NotFound")


@pytest.mark.parametrize(
    "status, dialect, query",
    [
        (503, BackendKind.V3, "hash=A"),
        (404, BackendKind.V3, ""),
        (404, BackendKind.V3, "timeout=32s"),
        (404, None, "hash=A"),
    ],
)
def test_hash_that_a_failing_backend_may_have_published_is_503(
    status: int, dialect: BackendKind | None, query: str
) -> None:
    """One that was never read here published nothing that a replica like this one could have."""
    backend = Backend(name=BackendName("b"), url="http://y")
    failure = Failure(Cause.NOT_FOUND, "")
    failing = Observation(backend=backend, attempted=True, dialect=dialect, failure=failure)
    state = merge({backend.name: failing}, generation=1)
    decision = decide(state, Request("GET", "/openapi/v3/apis/batch/v1", query))
    assert isinstance(decision, PreparedAnswer)
    assert decision.status == status


@pytest.mark.parametrize(
    ("retry_after", "expected"), [(None, "1"), (7.4, "7"), (0.2, "1")], ids=["unsaid", "said", "at once"]
)
def test_failing_owner_says_when_to_come_back(retry_after: float | None, expected: str) -> None:
    owned = Backend(name=BackendName("b"), url="http://y", group_versions=frozenset({APPS}))
    failure = Failure(Cause.SERVER_ERROR, "", retry_after=retry_after)
    failing = Observation(backend=owned, attempted=True, failure=failure)
    decision = decide(merge({owned.name: failing}, generation=1), Request("GET", PATH))
    assert decision is not None
    assert refused(decision, 503, "ServiceUnavailable")["Retry-After"] == expected


@pytest.mark.parametrize(
    "query, is_failing, status", [("hash=A", True, 503), ("hash=A", False, 404), ("", True, 404)]
)
def test_hash_that_one_server_of_an_address_may_have_published_is_503(
    query: str, is_failing: bool, status: int
) -> None:
    silent = Failure(Cause.TIMEOUT, "silent") if is_failing else None
    servers = (BackendServer("1", {}), BackendServer("2", {}, failure=silent))
    union = Observation(backend=BACKEND, attempted=True, servers=servers)
    state = merge({BACKEND.name: union}, generation=1)
    decision = decide(state, Request("GET", PATH, query), is_checked=True)
    assert isinstance(decision, PreparedAnswer)
    assert decision.status == status
    assert ("Retry-After" in fields_of(decision)) == (status == 503)


@pytest.mark.parametrize(
    ("fields", "is_asked"),
    [
        ({}, True),
        ({"failure": Failure(Cause.TIMEOUT, "silent")}, False),
        ({"backend": Backend(name=BackendName("a"), directory=Path("/x"))}, False),
        ({"backend": replace(BACKEND, group_versions=frozenset({GroupVersion("apis/b/v1")}))}, False),
    ],
    ids=["up", "down", "of files", "of others"],
)
def test_unknown_hash_asks_each_backend_that_may_have_it(fields: dict[str, Any], is_asked: bool) -> None:
    observation = replace(Observation(backend=BACKEND, attempted=True), **fields)
    decision = decide(merge({BACKEND.name: observation}, generation=1), Request("GET", PATH, "hash=A"))
    assert (decision == Revalidate((BACKEND.name,), is_unknown=True)) == is_asked


@pytest.mark.parametrize("query", ["", "hash=A"])
@pytest.mark.parametrize("state", [snapshot(), merge({}, generation=1)], ids=["published", "empty"])
def test_backend_is_never_asked_twice_for_one_request(state: Snapshot, query: str) -> None:
    decision = decide(state, Request("GET", PATH, query), vouched_until=lambda _: 1.0, is_checked=True)
    assert not isinstance(decision, Revalidate)


def test_absent_document_is_503_while_a_backend_has_not_been_tried() -> None:
    decision = decide(merge({}, generation=1), Request("GET", PATH))
    assert decision is not None
    assert refused(decision, 503, "ServiceUnavailable")["Retry-After"] == "1"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_root_has_its_length_for_head_and_no_body(method: str) -> None:
    decision = answer("/openapi/v3", method=method)
    assert isinstance(decision, Deliver)
    prepared = deliver(decision.representation, b"x" * 10)
    assert fields_of(prepared)["Content-Length"] == "10"
    assert prepared.body == (b"" if method == "HEAD" else b"x" * 10)


def test_document_of_a_failing_backend_is_marked_as_stale() -> None:
    for failure, status in (
        (None, "specmux; hit"),
        (Failure(Cause.TIMEOUT, ""), "specmux; hit; detail=stale"),
    ):
        offers = {APPS: Offer(hash=Hash("CURRENT"), provenance=Provenance.NATIVE)}
        owner = Observation(backend=BACKEND, offers=offers, attempted=True, failure=failure)
        decision = decide(merge({BACKEND.name: owner}, generation=1), Request("GET", PATH))
        assert isinstance(decision, Deliver)
        assert decision.representation.is_stale == (failure is not None)
        assert served(decision)["Cache-Status"] == status


@pytest.mark.parametrize(("losses", "expected"), [(0, None), (3, "3")])
def test_document_says_how_much_its_conversion_lost(losses: int, expected: str | None) -> None:
    offers = {APPS: Offer(hash=Hash("A"), provenance=Provenance.CONVERTED, losses=losses)}
    owner = Observation(backend=BACKEND, offers=offers, attempted=True)
    decision = decide(merge({BACKEND.name: owner}, generation=1), Request("GET", PATH))
    assert decision is not None
    assert served(decision).get("Specmux-Losses") == expected


@pytest.mark.parametrize(
    ("query", "has_dictionaries", "is_one"),
    [("hash=CURRENT", True, True), ("", True, False), ("hash=CURRENT", False, False)],
)
def test_only_a_document_under_its_hash_may_be_a_dictionary(
    query: str, has_dictionaries: bool, is_one: bool
) -> None:
    decision = decide(snapshot(), Request("GET", PATH, query), has_dictionaries=has_dictionaries)
    assert decision is not None
    expected = 'match="v1?*", id="CURRENT"' if is_one else None
    assert served(decision).get("Use-As-Dictionary") == expected


def test_root_is_revalidated_and_has_a_strong_etag() -> None:
    fields = served(answer("/openapi/v3"))
    assert fields["Cache-Control"] == "no-cache"
    assert fields["Content-Type"] == "application/json"
    decision = answer("/openapi/v3", if_none_match=fields["ETag"])
    assert isinstance(decision, PreparedAnswer)
    assert decision.status == 304


@pytest.mark.parametrize(
    ("accept", "expected"), [(None, JSON), (CBOR, CBOR), (PROTOBUF, JSON), ("text/html", JSON)]
)
def test_root_is_json_for_whoever_takes_neither_form(accept: str | None, expected: str) -> None:
    decision = decide(snapshot(), Request("GET", "/openapi/v3", accept=accept))
    assert isinstance(decision, Deliver)
    assert (decision.media_type, decision.representation.coding) == (expected, Coding.IDENTITY)


def test_other_paths_are_not_ours() -> None:
    assert decide(snapshot(), Request("GET", "/api")) is None
    assert decide(snapshot(), Request("GET", "/openapi/v33")) is None
