"""The conformance kit: specmux keeps every promise, and a server that breaks one is told which."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document, serving
from fakes.apiserver_deviations import KNOWN, as_kubernetes
from running.service import Client, backend, service
from specmux_tools.commands.conformance import conformance
from specmux_tools.conformance import (
    PROMISES,
    Ask,
    HTTPAnswer,
    Verdict,
    report_of,
    try_promises,
)
from specmux_tools.reports import render

APPS, BATCH = "apis/apps.example.org/v1", "apis/batch.example.org/v1"

Tamper = Callable[[str, Mapping[str, str], HTTPAnswer], HTTPAnswer]

DOCS = Path(__file__).resolve().parents[3] / "docs"


def asker(client: Client, tamper: Tamper) -> Ask:
    async def ask(target: str, fields: Mapping[str, str]) -> HTTPAnswer:
        status, headers, body = await client.get(target, **fields)
        answered = {name.lower(): value for name, value in headers.items()}
        return tamper(target, fields, HTTPAnswer(status, answered, body))

    return ask


def verdicts(tamper: Tamper, documents: int | None = None) -> list[Verdict]:
    async def scenario() -> list[Verdict]:
        published = {key: document(key, note="x" * 200_000) for key in (APPS, BATCH)}
        async with (
            serving(FakeAPIServer(published)) as origin,
            service(backend("a", origin.url)) as client,
        ):
            await client.says_ready()
            return await try_promises(asker(client, tamper), most_documents=documents)

    return asyncio.run(scenario())


def broken(found: list[Verdict]) -> set[str]:
    return {verdict.promise.name for verdict in found if not verdict.is_kept}


def untouched(target: str, fields: Mapping[str, str], answer: HTTPAnswer) -> HTTPAnswer:
    return answer


def with_field(name: str, value: str) -> Tamper:
    return lambda target, fields, answer: replace(answer, fields={**answer.fields, name: value})


def is_document(target: str) -> bool:
    return target.startswith(("/openapi/v3/apis/apps", "/openapi/v3/apis/batch"))


def test_specmux_keeps_every_promise() -> None:
    found = verdicts(untouched)
    assert broken(found) == set()
    assert [verdict.promise for verdict in found] == list(PROMISES)


def test_kubernetes_deviations_are_named_and_no_others() -> None:
    found = verdicts(as_kubernetes)
    assert broken(found) == KNOWN
    assert {each.promise.name for each in found if each.promise.is_required} & broken(found) == {"stale-hash"}


@pytest.mark.parametrize("expires", ["Tue, 01 Dec 2026 00:00:00 GMT", "0", ""])
def test_immutable_answer_that_expires_soon_is_not_kept(expires: str) -> None:
    def tamper(target: str, fields: Mapping[str, str], answer: HTTPAnswer) -> HTTPAnswer:
        made = as_kubernetes(target, fields, answer)
        return replace(made, fields={**made.fields, "expires": expires}) if "expires" in made.fields else made

    assert "immutable" in broken(verdicts(tamper))


@pytest.mark.parametrize(
    ("name", "tamper"),
    [
        ("root", lambda target, _, a: replace(a, body=b"{}") if target == "/openapi/v3" else a),
        (
            "relative-urls",
            lambda target, _, a: replace(a, body=a.body.replace(b'":"/openapi', b'":"//evil/openapi')),
        ),
        ("hash", lambda target, _, a: replace(a, body=a.body.replace(b"?hash=", b"?other="))),
        (
            "group-versions",
            lambda target, _, a: (
                replace(a, body=a.body.replace(b"batch", b"lost")) if target == "/openapi/v3" else a
            ),
        ),
        ("documents", lambda target, _, a: replace(a, status=503) if is_document(target) else a),
        ("true-hashes", lambda target, _, a: replace(a, body=a.body + b" ") if is_document(target) else a),
        ("immutable", with_field("cache-control", "no-cache")),
        ("without-hash", with_field("cache-control", "public, max-age=31536000, immutable")),
        ("stale-hash", lambda target, _, a: replace(a, status=200) if a.status == 301 else a),
        (
            "stale-hash",
            lambda target, _, a: replace(
                a, fields={**a.fields, "location": a.field("location").replace("timeout=32s", "")}
            ),
        ),
        ("etag", lambda target, _, a: replace(a, status=200) if a.status == 304 else a),
        ("protobuf", lambda target, f, a: replace(a, status=406) if "protobuf" in f["Accept"] else a),
        ("protobuf", lambda target, f, a: replace(a, body=b"\x00") if "protobuf" in f["Accept"] else a),
        ("vary", with_field("vary", "Origin")),
        ("distinct-etags", with_field("etag", '"one"')),
        (
            "gzip",
            lambda target, _, a: replace(
                a, fields={k: v for k, v in a.fields.items() if k != "content-encoding"}
            ),
        ),
        ("unknown", lambda target, _, a: replace(a, status=200) if a.status == 404 else a),
        ("not-acceptable", lambda target, _, a: replace(a, status=200) if a.status == 406 else a),
        (
            "accept-parameter",
            lambda _, fields, a: replace(a, status=406) if "drop=" in fields["Accept"] else a,
        ),
        (
            "accept-parameter",
            lambda _, fields, a: replace(a, body=b"{}") if "drop=" in fields["Accept"] else a,
        ),
        (
            "root-etag",
            lambda target, _, a: replace(a, fields={}) if target == "/openapi/v3" else a,
        ),
    ],
)
def test_broken_promise_is_named(name: str, tamper: Tamper) -> None:
    found = verdicts(tamper)
    assert name in broken(found)
    report = report_of("http://server", found)
    for form in ("text", "json", "sarif", "markdown"):
        assert name in render(report, form, is_coloured=False, version="1").decode()
    schema = json.loads((DOCS / "conformance-report.schema.json").read_text())
    written = json.loads(render(report, "json", is_coloured=False, version="1"))
    Draft202012Validator(schema).validate(written)
    is_required = any(verdict.promise.is_required and not verdict.is_kept for verdict in found)
    assert ("not ok" in render(report, "tap", is_coloured=False, version="1").decode()) == is_required


def test_what_is_no_url_is_a_fault() -> None:
    url = f"/openapi/v3/{APPS}?hash=A"
    paths = {APPS: url, "none": None, "odd": "//["}

    async def answer(target: str, fields: Mapping[str, str]) -> HTTPAnswer:
        root = {"paths": {key: {"serverRelativeURL": each} for key, each in paths.items()}}
        body = root if target == "/openapi/v3" else {"openapi": "3.0.0"}
        return HTTPAnswer(301 if "timeout" in target else 200, {"location": "//["}, json.dumps(body).encode())

    faults = {each.promise.name: each.faults for each in asyncio.run(try_promises(answer))}
    assert faults["relative-urls"] == ["none: none", "odd: //["]
    assert faults["stale-hash"] == [f"{APPS}: 301, Location: //["]


def test_promise_that_cannot_be_tried_is_not_kept() -> None:
    async def nothing(target: str, fields: Mapping[str, str]) -> HTTPAnswer:
        return HTTPAnswer(404, {}, b"")

    found = asyncio.run(try_promises(nothing))
    assert {"documents", "immutable", "protobuf"} <= broken(found)
    assert (
        "it could not be tried"
        in render(report_of("s", found), "text", is_coloured=False, version="1").decode()
    )


def test_documents_that_are_tried_can_be_few() -> None:
    (documents,) = (each for each in verdicts(untouched, documents=1) if each.promise.name == "documents")
    assert documents.tried == 1


def test_command_tries_a_running_server(tmp_path: Path) -> None:
    async def scenario() -> subprocess.CompletedProcess[str]:
        async with (
            serving(FakeAPIServer({APPS: document(APPS)})) as origin,
            service(backend("a", origin.url)) as client,
        ):
            await client.says_ready()
            command = [sys.executable, "-m", "specmux_aggregator.cli", "conformance", client.base]
            return await asyncio.to_thread(
                subprocess.run,
                command,
                capture_output=True,
                text=True,
                timeout=DEADLINE,
                env={**os.environ, "HOME": str(tmp_path)},
            )

    done = asyncio.run(scenario())
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(PROMISES)} of {len(PROMISES)} promises kept" in done.stdout


@pytest.mark.parametrize(
    ("tried_of", "faults", "words", "code"),
    [
        (1, [], (), 0),
        (1, ["no ETag"], (), 1),
        (1, ["no ETag"], ("--allow-untested",), 1),
        (1, ["no ETag"], ("--fail-on", "never"), 0),
        (0, [], (), 5),
        (0, [], ("--allow-untested",), 0),
    ],
)
def test_a_broken_promise_and_one_that_was_not_tested_have_their_codes(
    tried_of: int, faults: list[str], words: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(*arguments: object, **rest: object) -> list[Verdict]:
        return [Verdict(each, tried_of, list(faults)) for each in PROMISES if each.is_required]

    monkeypatch.setattr("specmux_tools.conformance.try_promises", found)
    assert CliRunner().invoke(conformance, ["http://127.0.0.1:9", *words]).exit_code == code
