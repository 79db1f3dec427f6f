"""A backend's root is believed as a whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.faulty_backend import root_with
from shared_data import documents
from specmux_aggregator.http.messages import ETag
from specmux_aggregator.model.backend import Backend, BackendName, ClusterFacts
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.upstream.client import BackendRoot, parse_root
from specmux_converters.group_versions import GroupVersion

KEY = "apis/apps/v1"
URL = f"/openapi/v3/{KEY}"


def parsed(body: bytes, *, most: int = 100, **fields: Any) -> BackendRoot | Failure:
    fields.setdefault("url", "http://backend")
    backend = Backend(name=BackendName("b"), **fields)
    return parse_root(body, backend, etag=ETag('"x"'), max_group_versions=most)


def offers(body: bytes, **fields: Any) -> dict[str, str | None]:
    root = parsed(body, **fields)
    assert isinstance(root, BackendRoot), root
    return dict(root.offers)


def refusal(body: bytes, **fields: Any) -> Failure:
    failure = parsed(body, **fields)
    assert isinstance(failure, Failure), failure
    return failure


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"{URL}?hash=AB09cd", "AB09cd"),
        (f"{URL}?etag=AB", "AB"),
        (f"{URL}?hash={'A' * 128}", "A" * 128),
        (URL, None),
        (f"{URL}?hash=", None),
        (f"/base/path{URL}?hash=AB", "AB"),
    ],
)
def test_hash_is_taken_when_the_url_is_the_document_s_own(url: str, expected: str | None) -> None:
    assert offers(root_with({KEY: url}), url="http://backend:1/base/path") == {KEY: expected}


@pytest.mark.parametrize(
    "url",
    [
        "//evil/",
        f"//evil{URL}?hash=AB",
        f"https://evil{URL}?hash=AB",
        f"http://backend{URL}?hash=AB",
        f"/openapi/v3/../v3/{KEY}",
        "/openapi/v3/apis/../apis/apps/v1",
        "/openapi/v3/apis/apps/v2?hash=AB",
        f"{URL}/?hash=AB",
        f"/openapi//v3/{KEY}?hash=AB",
        f"\\openapi\\v3\\{KEY}",
        f"/openapi/v3\\{KEY}?hash=AB",
        "/openapi/v3/apis%2fapps/v1?hash=AB",
        "/openapi/v3/apis/apps/v%31?hash=AB",
        f"{URL}?hash=A%42",
        f"{URL}?hash=AB&x=1",
        f"{URL}?hash=AB&hash=CD",
        f"{URL}?x=1",
        f"{URL}?",
        f"{URL}?hash=" + "A" * 129,
        f"{URL}?hash=AB#fragment",
        f"{URL}?hash=AB\n",
        f"{URL}?hash=AB\r\nX: y",
        f"{URL}\x00?hash=AB",
        f" {URL}?hash=AB",
        f"/other/base{URL}?hash=AB",
        f"openapi/v3/{KEY}?hash=AB",
        f"{URL}?hash=\uff21",
        "",
    ],
)
def test_whole_root_is_refused_when_a_url_leads_elsewhere(url: str) -> None:
    failure = refusal(
        root_with({"api/v1": "/openapi/v3/api/v1?hash=AB", KEY: url}), url="http://backend/base"
    )
    assert failure.cause is Cause.BAD_ROOT
    assert KEY in failure.detail
    assert failure.detail.isprintable()


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/apis/apps/v1",
        "apis/apps/v1/",
        "apis//v1",
        "apis/../v1",
        "..",
        "apis/./v1",
        "apis/a%2fb/v1",
        "apis/a\\b/v1",
        "apis/a\nb/v1",
        "apis/a\x00b/v1",
        "apis/a b/v1",
        "apis/ä/v1",
        "apis/a?b/v1",
        "apis/a#b/v1",
        "a" * 513,
        "a\n",
    ],
)
def test_whole_root_is_refused_when_a_key_is_no_path(key: str) -> None:
    failure = refusal(root_with({"api/v1": "/openapi/v3/api/v1?hash=AB", key: f"/openapi/v3/{key}?hash=AB"}))
    assert failure.cause is Cause.BAD_ROOT
    assert failure.detail.isprintable()
    assert len(failure.detail) < 400


def test_keys_of_real_apiservers_are_taken() -> None:
    keys = documents("1.35").keys()
    assert len(keys) > 30
    assert offers(root_with({key: f"/openapi/v3/{key}?hash=AB" for key in keys})).keys() == keys


@pytest.mark.parametrize("key", ["version", "openid/v1/jwks", ".well-known/openid-configuration", "a" * 512])
def test_keys_beside_group_versions_are_taken(key: str) -> None:
    assert offers(root_with({key: f"/openapi/v3/{key}?hash=AB"})) == {key: "AB"}


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b"", Cause.BAD_BODY),
        (b"<html>", Cause.BAD_BODY),
        (b'{"paths": {}', Cause.BAD_BODY),
        (b'{"paths": {}} {}', Cause.BAD_BODY),
        (b"\xff\xfe", Cause.BAD_BODY),
        (b"[" * 100_000, Cause.BAD_BODY),
        (b"null", Cause.BAD_ROOT),
        (b"[]", Cause.BAD_ROOT),
        (b'"paths"', Cause.BAD_ROOT),
        (b"{}", Cause.BAD_ROOT),
        (b'{"paths": null}', Cause.BAD_ROOT),
        (b'{"paths": ["/api/v1"]}', Cause.BAD_ROOT),
        (b'{"paths": {"api/v1": null}}', Cause.BAD_ROOT),
        (b'{"paths": {"api/v1": "x"}}', Cause.BAD_ROOT),
        (b'{"paths": {"api/v1": {}}}', Cause.BAD_ROOT),
        (b'{"paths": {"api/v1": {"serverRelativeURL": 1}}}', Cause.BAD_ROOT),
        (b'{"paths": {"api/v1": {"serverRelativeURL": ["/openapi/v3/api/v1"]}}}', Cause.BAD_ROOT),
    ],
)
def test_body_is_refused_when_it_is_no_root(body: bytes, cause: Cause) -> None:
    assert refusal(body).cause is cause


def test_root_may_be_empty_and_may_say_more() -> None:
    assert offers(b'{"paths": {}, "kind": "x"}') == {}
    assert offers(b'{"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1", "x": 1}}}') == {
        "api/v1": None
    }


def test_root_is_refused_when_it_lists_more_than_allowed() -> None:
    body = root_with({f"apis/g{number}/v1": f"/openapi/v3/apis/g{number}/v1" for number in range(101)})
    assert refusal(body).cause is Cause.BAD_ROOT
    assert len(offers(body, most=101)) == 101


def test_keys_of_others_are_ignored_whatever_they_say_when_the_backend_owns_some() -> None:
    body = root_with({KEY: f"{URL}?hash=AB", "version": "//evil/", "a\nb": "x"})
    root = parsed(body, group_versions=frozenset({GroupVersion(KEY)}))
    assert root == BackendRoot({GroupVersion(KEY): "AB"}, ETag('"x"'), ("a\\nb", "version"))


@given(st.dictionaries(st.text(max_size=12), st.one_of(st.text(max_size=30), st.integers(), st.none())))
def test_any_root_is_offers_or_a_failure(urls: dict[str, Any]) -> None:
    paths = {key: {"serverRelativeURL": url} for key, url in urls.items()}
    try:
        body = orjson.dumps({"paths": paths})
    except orjson.JSONEncodeError:  # lone surrogates
        return
    answer = parsed(body)
    if isinstance(answer, BackendRoot):
        for key in answer.offers:
            assert f"/openapi/v3/{key}" == urls[key].partition("?")[0]


@pytest.mark.parametrize("member", [b"[],", b"{},", b'{"a":1},', b'"",', b"0,"])
def test_root_of_many_values_is_refused_before_it_is_parsed(member: bytes) -> None:
    body = b'{"paths": {}, "x": [' + member * 200_000 + b"0]}"
    assert refusal(body).cause is Cause.TOO_LARGE


def test_what_the_cluster_says_now_decides_what_of_a_root_is_published() -> None:
    """A root is kept while it is not modified; facts change meanwhile."""
    now = Backend(name=BackendName("b"), url="http://backend", found=ClusterFacts())
    then = ClusterFacts(excluded=frozenset({GroupVersion(KEY)}))
    root = parsed(root_with({KEY: f"{URL}?hash=AB", "api/v1": "/openapi/v3/api/v1?hash=CD"}), found=then)
    assert isinstance(root, BackendRoot)
    assert root.of(now) is root and root.offers.keys() == {KEY, "api/v1"}
    less = root.of(replace(now, found=then))
    assert (set(less.offers), less.ignored, less.etag) == ({"api/v1"}, (KEY,), root.etag)
    odd = parsed(root_with({KEY: "//evil/", "api/v1": "/openapi/v3/api/v1?hash=CD"}), found=then)
    assert isinstance(odd, BackendRoot) and (set(odd.offers), odd.ignored) == ({"api/v1"}, (KEY,))
