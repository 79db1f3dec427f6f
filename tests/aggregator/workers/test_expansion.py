"""What a small document may cost the process that builds of it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from deadline import DEADLINE

OK = {"200": {"description": "OK", "schema": {"type": "object"}}}
MEDIA_TYPES = [f"a/b{number}" for number in range(500)]
BODY = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(20)}}
HEAD = {"swagger": "2.0", "info": {"title": "t", "version": "1"}}

PROGRAM = """
import re, sys
from specmux_aggregator.workers.documents import build_swagger
from specmux_aggregator.http.messages import Coding
from specmux_converters.document import Limits
body = sys.stdin.buffer.read()
made = build_swagger(
    body, Coding.IDENTITY, owned=None, held={}, limits=Limits(), max_group_versions=10_000
)
peak = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
print(type(made).__name__, int(peak) // 1024)
"""


def with_media_types() -> dict[str, Any]:
    """Each body in five hundred forms."""
    post = {"parameters": [{"in": "body", "name": "body", "schema": BODY}], "responses": OK}
    paths = {f"/apis/g.io/v1/x{number}": {"post": post} for number in range(300)}
    return {**HEAD, "consumes": MEDIA_TYPES, "produces": MEDIA_TYPES, "paths": paths}


def with_parameters() -> dict[str, Any]:
    """Each operation has a thousand parameters written out."""
    shared = {f"p{number}": {"in": "query", "name": f"n{number}", "type": "string"} for number in range(1000)}
    get = {"parameters": [{"$ref": f"#/parameters/{name}"} for name in shared], "responses": OK}
    paths = {f"/apis/g.io/v1/x{number}": {"$ref": "#/x-item"} for number in range(1500)}
    return {**HEAD, "parameters": shared, "x-item": {"get": get}, "paths": paths}


def with_group_versions() -> dict[str, Any]:
    """A definition in each of a thousand documents."""
    schema = {"type": "object", "description": "d" * 50_000}
    ok = {"200": {"description": "OK", "schema": {"$ref": "#/definitions/A"}}}
    paths = {f"/apis/g{number}.io/v1/x": {"get": {"responses": ok}} for number in range(1500)}
    return {**HEAD, "definitions": {"A": schema}, "paths": paths}


def with_equal_operation_ids() -> dict[str, Any]:
    """Each operation loses its id: many small parts, and a loss of each."""
    get = {"operationId": "same", "responses": {"200": {"description": "OK"}}}
    return {**HEAD, "paths": {f"/apis/g.io/v1/x{number}": {"get": get} for number in range(40_000)}}


def with_shared_losses() -> dict[str, Any]:
    """What two thousand documents share has a loss in each of a thousand places."""
    ok = {"200": {"description": "OK"}}
    security = {f"s{number}": {"type": "basic", "scopes": {}} for number in range(1000)}
    paths = {f"/apis/g{number}.io/v1/x": {"get": {"responses": ok}} for number in range(2000)}
    return {**HEAD, "securityDefinitions": security, "paths": paths}


def peak_of(document: dict[str, Any]) -> tuple[bytes, int]:
    """What a worker makes of a document, and the MiB that it takes at most."""
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(document).encode(),
        capture_output=True,
        check=True,
        timeout=DEADLINE,
    )
    kind, peak = answer.stdout.split()
    return kind, int(peak)


@pytest.mark.parametrize("make", [with_media_types, with_parameters, with_group_versions])
def test_a_small_document_takes_little_memory(make: Any) -> None:
    body = json.dumps(make()).encode()
    assert len(body) < 300_000
    kind, peak = peak_of(make())
    assert kind == b"Failure"
    assert peak < 256


@pytest.mark.parametrize("make", [with_equal_operation_ids, with_shared_losses])
def test_what_is_reported_takes_little_memory(make: Any) -> None:
    kind, peak = peak_of(make())
    assert kind == b"tuple"
    assert peak < 256
