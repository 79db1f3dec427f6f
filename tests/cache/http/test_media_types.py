from __future__ import annotations

import pytest

from specmux_cache.http.media_types import (
    CBOR,
    JSON,
    JSON_SCHEMAS,
    PROTOBUF,
    accept_field,
    accepted_by_gates,
    canonical,
    find_answer_type,
)


@pytest.mark.parametrize(
    ("allow", "prefer", "expected"),
    [
        (False, False, "application/json"),
        (False, True, "application/json"),
        (True, False, "application/json, application/cbor;q=0.9"),
        (True, True, "application/cbor, application/json;q=0.9"),
    ],
)
def test_accept_when_the_gates_are_set(allow, prefer, expected):
    assert accept_field(accepted_by_gates(allow_cbor=allow, prefer_cbor=prefer)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Application/JSON; charset=utf-8", JSON),
        ("application/com.github.proto-openapi.spec.v3@v1.0+protobuf", PROTOBUF),
        ("protobuf", PROTOBUF),
        ("cbor", CBOR),
        ("text/html", "text/html"),
        ("schemas", JSON_SCHEMAS),
        ('application/json; charset=utf-8; Profile="schemas"', JSON_SCHEMAS),
        ("application/json;profile=components", JSON),
        ("application/json;g=a;v=b;as=profile=schemas", JSON),
        ("application/cbor;profile=schemas", CBOR),
    ],
)
def test_canonical(text, expected):
    assert canonical(text) == expected


@pytest.mark.parametrize(
    ("content_type", "body", "accepted", "expected"),
    [
        ("application/json", b"", (JSON,), JSON),
        ("text/plain; charset=utf-8", b' {"paths":{}}', (JSON,), JSON),
        (None, b"{}", (JSON, CBOR), JSON),
        ("application/octet-stream", b"\xd9\xd9\xf7\xa0", (CBOR, JSON), CBOR),
        ("text/plain", b"no", (JSON,), None),
        ("text/html", b"{}", (JSON,), None),
        ("application/cbor", b"\xa0", (JSON,), None),
        (None, b"{}", (PROTOBUF,), None),
        (None, b"", (JSON,), None),
    ],
)
def test_answered_type_when_a_server_is_vague(content_type, body, accepted, expected):
    assert find_answer_type(content_type, body, accepted) == expected
