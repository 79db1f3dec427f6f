from __future__ import annotations

import hashlib

import pytest

from specmux_aggregator.http.content_codings import encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.workers.integrity import contradicts, fault_of, is_proven
from specmux_converters.document import Limits

DOCUMENT = b'{"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {}}'
LIMITS = Limits(max_bytes=1000)


def sha512(body: bytes) -> Hash:
    return Hash(hashlib.sha512(body).hexdigest().upper())


@pytest.mark.parametrize("coding", list(Coding))
def test_hash_proves_the_very_bytes(coding: Coding) -> None:
    packed = encode_body(DOCUMENT, coding)
    assert is_proven(packed, coding, sha512(DOCUMENT), limits=LIMITS) is True
    assert is_proven(packed, coding, Hash(sha512(DOCUMENT).lower()), limits=LIMITS) is True
    assert is_proven(packed, coding, sha512(DOCUMENT + b" "), limits=LIMITS) is False
    assert fault_of(packed, coding, limits=LIMITS) is None


@pytest.mark.parametrize("body", [b"<html>openapi</html>", b"[1]", b'{"swagger": "2.0"}', b"", b"{"])
def test_bytes_that_are_no_document_are_never_proven(body: bytes) -> None:
    assert is_proven(body, Coding.IDENTITY, sha512(body), limits=LIMITS) is False
    fault = fault_of(body, Coding.IDENTITY, limits=LIMITS)
    assert fault is not None
    assert fault.cause is Cause.BAD_BODY


@pytest.mark.parametrize(
    ("body", "coding", "cause"),
    [
        (DOCUMENT * 50, Coding.IDENTITY, Cause.TOO_LARGE),
        (encode_body(b" " * 2000 + DOCUMENT, Coding.GZIP), Coding.GZIP, Cause.TOO_LARGE),
        (encode_body(DOCUMENT, Coding.GZIP)[:-4], Coding.GZIP, Cause.TRUNCATED),
    ],
)
def test_bytes_that_cannot_be_decoded_are_a_failure(body: bytes, coding: Coding, cause: Cause) -> None:
    for outcome in (
        is_proven(body, coding, sha512(DOCUMENT), limits=LIMITS),
        fault_of(body, coding, limits=LIMITS),
    ):
        assert isinstance(outcome, Failure)
        assert outcome.cause is cause


@pytest.mark.parametrize(
    ("etag", "expected"),
    [
        (None, False),
        ('"short"', False),
        (f'"{"A" * 128}"', False),
        (f'W/"{"a" * 128}"', False),
        (f'"{"B" * 128}"', True),
        (f'W/"{"b" * 128}"', True),
        (f'"{"A" * 128}-gzip"', False),
        (f'"{"B" * 127}-"', False),
    ],
)
def test_entity_tag_of_the_same_kind_contradicts_when_it_differs(etag: str | None, expected: bool) -> None:
    assert contradicts(etag, Hash("A" * 128)) is expected


def test_document_of_many_values_is_refused_before_it_is_parsed() -> None:
    body = b'{"openapi": "3.0.0", "x": [' + b"[]," * 1_500_000 + b"0]}"
    fault = fault_of(body, Coding.IDENTITY, limits=Limits(max_values=1_000_000))
    assert fault is not None
    assert (fault.cause, fault.detail) == (
        Cause.TOO_LARGE,
        "(document): more than the 1000000 values allowed",
    )
