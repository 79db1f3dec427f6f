from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.http.negotiation import (
    CODINGS,
    ELEMENTS_MAX,
    LIST_MAX,
    MEDIA_TYPES,
    apply_profile,
    coding_for,
    media_type_for,
    overlong_list,
)
from specmux_converters.media_types import CBOR, JSON, JSON_COMPONENTS, JSON_SCHEMAS, PROTOBUF

OLD_PROTOBUF = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("application/json;profile=schemas", JSON_SCHEMAS),
        ("application/json;profile=schemas;q=0.5, application/json;q=0.9", JSON),
        ("application/json;q=0.5, application/json;profile=components", JSON_COMPONENTS),
        ("application/json, application/json;profile=schemas", JSON),
        ("application/json;profile=other;q=0.9, application/json;profile=schemas", JSON_SCHEMAS),
    ],
)
def test_a_profile_has_a_weight_of_its_own(accept: str, chosen: str) -> None:
    assert apply_profile(media_type_for(accept), accept) == chosen


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, JSON),
        ("", JSON),
        (" , ", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        ("application/json, */*", JSON),
        (PROTOBUF, PROTOBUF),
        (OLD_PROTOBUF, PROTOBUF),
        ("application/cbor, application/json;q=0.9", CBOR),
        ("application/cbor;q=0.5, application/json", JSON),
        ("Application/JSON", JSON),
        ("application/json;charset=utf-8", JSON),
        ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", JSON),
        (f"application/json;q=0.1,{PROTOBUF};q=0.9", PROTOBUF),
        (f"{PROTOBUF},application/json", PROTOBUF),
        (f"application/json,{PROTOBUF}", JSON),
        (f"*/*;q=0.1,{PROTOBUF};q=0.2", PROTOBUF),
        (f"*/*,{PROTOBUF}", PROTOBUF),
        (f"application/json;q=abc,{PROTOBUF};q=0.5", PROTOBUF),
        ("application/json;q=0,*/*", PROTOBUF),
        ("application/json;q=0,application/cbor", CBOR),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", JSON),
        ("text/html, application/json", JSON),
        ("application/json;q=0", None),
        ("text/html", None),
        ("application/yaml", None),
        ("json", None),
        (";;;,,", None),
        ("*/json", None),
        ("application/json;q=1.5", None),
    ],
)
def test_media_type_is_what_the_client_likes_best(accept: str | None, expected: str | None) -> None:
    assert media_type_for(accept) == expected


def test_media_type_is_another_when_one_has_no_form() -> None:
    assert media_type_for(f"{PROTOBUF}, application/json;q=0.5", (JSON, CBOR)) == JSON
    assert media_type_for(PROTOBUF, (JSON, CBOR)) is None


@pytest.mark.parametrize(
    ("accept_encoding", "expected"),
    [
        (None, Coding.IDENTITY),
        ("", Coding.IDENTITY),
        ("gzip", Coding.GZIP),
        ("x-gzip", Coding.GZIP),
        ("GZIP", Coding.GZIP),
        ("gzip, deflate, br, zstd", Coding.ZSTD),
        ("gzip, deflate, br", Coding.GZIP),
        ("zstd;q=0.5, gzip;q=0.9", Coding.GZIP),
        ("gzip;q=0", Coding.IDENTITY),
        ("gzip;q=0.5, identity", Coding.IDENTITY),
        ("identity;q=0.5, gzip", Coding.GZIP),
        ("*", Coding.GZIP),
        ("*;q=0", Coding.IDENTITY),
        ("br", Coding.IDENTITY),
        ("gzip;q=nonsense", Coding.IDENTITY),
        ("identity;q=0", Coding.IDENTITY),
    ],
)
def test_coding_is_what_the_client_likes_best(accept_encoding: str | None, expected: Coding) -> None:
    assert coding_for(accept_encoding) is expected


@given(st.text(max_size=700))
def test_any_header_is_answered_with_something_offered(text: str) -> None:
    assert media_type_for(text) in (*MEDIA_TYPES, None)
    assert coding_for(text) in CODINGS


FIELDS = {
    "Accept": "accept",
    "Accept-Encoding": "accept_encoding",
    "If-None-Match": "if_none_match",
    "If-Match": "if_match",
}


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(
    ("value", "is_overlong"),
    [
        ("", False),
        (",".join("a" * ELEMENTS_MAX), False),
        (",".join("a" * (ELEMENTS_MAX + 1)), True),
        ("," * (ELEMENTS_MAX - 1), False),
        ("," * ELEMENTS_MAX, True),
        ("a" * LIST_MAX, False),
        ("a" * (LIST_MAX + 1), True),
    ],
)
def test_list_that_would_take_long_to_read_is_named(name: str, value: str, is_overlong: bool) -> None:
    request = Request("GET", "/openapi/v3", **{FIELDS[name]: value})  # type: ignore[arg-type]
    assert overlong_list(request) == (name if is_overlong else None)
