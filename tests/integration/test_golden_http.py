"""The reference's recorded answers, asked of us: equal where it is right, and as spec'd where it is wrong.

Every recorded request is asked. A case is compared with the record unless it stands in ``OURS``, which says
what we answer instead and why; a case that is in neither group cannot exist."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from fakes.apiserver import FakeAPIServer, document, hash_of, serving
from running.service import backend, service
from shared_data import GOLDEN, load
from specmux_converters.media_types import PROTOBUF

RECORDS = (
    "refserver-apps.v1.json",
    "agg-converted-v2only-g1.json",
    "agg-proxied-g0.json",
    "agg-crd-cert-manager.json",
)


@dataclass(frozen=True, slots=True)
class Ours:
    """What we answer where the reference is wrong."""

    status: int
    why: str
    content_type: str | None = None


RANGE = Ours(200, "ranges of a document that is cached whole are not offered (RFC 9110 14.2 allows it)")
IMS = Ours(200, "there is no Last-Modified to compare with: the ETag is the validator")
METHOD = Ours(405, "only GET and HEAD mean anything here")
NO_MATCH_CODED = Ours(200, "the tag is that of another content coding")
UNKNOWN = Ours(404, "200 with an empty body is 'unexpected end of JSON input' to kubectl")

OURS = {
    "discovery-trailing-slash": Ours(404, "another path"),
    "discovery-post": METHOD,
    "discovery-range": RANGE,
    "discovery-ims-future": IMS,
    "gv-empty-hash": Ours(400, "a hash that is none"),
    "gv-two-hashes": Ours(400, "a cache in front could read it otherwise"),
    "gv-accept-cbor": Ours(200, "CBOR is offered"),
    "gv-accept-cbor-json": Ours(200, "CBOR is offered"),
    "gv-accept-garbage": Ours(406, "200 with an empty body in the reference"),
    "gv-accept-noslash": Ours(406, "200 with an empty body in the reference"),
    "gv-accept-q0-json": Ours(406, "q=0 excludes (RFC 9110 12.4.2)"),
    "gv-accept-q0-json-any": Ours(200, "q=0 excludes: what else there is", PROTOBUF),
    "gv-accept-case": Ours(200, "media types are case-insensitive (RFC 9110 8.3.1)"),
    "gv-accept-two-headers": Ours(200, "repeated fields are one list (RFC 9110 5.3)"),
    "gv-inm-pb": Ours(200, "the tag is that of the JSON form"),
    "gv-inm-unquoted": Ours(200, "not an entity tag"),
    "gv-gzip-304": NO_MATCH_CODED,
    "gv-ims-future": IMS,
    "gv-post": METHOD,
    "gv-put": METHOD,
    "gv-options": METHOD,
    "gv-delete": METHOD,
    "gv-range": RANGE,
    "gv-range-suffix": RANGE,
    "gv-range-multi": RANGE,
    "gv-range-bad": RANGE,
    "gv-range-pb": RANGE,
    "gv-if-range": RANGE,
    "gv-gzip-range": RANGE,
    "unknown-gv": UNKNOWN,
    "unknown-gv-hash": UNKNOWN,
    "unknown-gv-head": UNKNOWN,
    "unknown-gv-html": UNKNOWN,
    "gv-trailing-slash": UNKNOWN,
    "gv-double-slash": Ours(404, "lookup is by exact key: no path is rewritten"),
    "gv-encoded-slash": Ours(404, "lookup is by exact key: %2f is no slash"),
    "gv-dotdot": Ours(404, "lookup is by exact key: no path is rewritten"),
    "gv-uppercase": UNKNOWN,
}


@pytest.mark.parametrize("record", RECORDS)
def test_recorded_requests_are_answered_as_the_reference_does_or_better(record: str) -> None:
    cases = load(GOLDEN / "http" / record)
    key = next(
        case["request"]["path"].removeprefix("/openapi/v3/").partition("?")[0]
        for name, case in cases.items()
        if name == "gv-no-hash"
    )

    async def scenario() -> list[str]:
        origin = FakeAPIServer({key: document(key)})
        async with serving(origin), service(backend("a", origin.url)) as client:
            await client.ready()
            current = hash_of(document(key))
            old = next(
                case["request"]["path"].partition("hash=")[2].partition("&")[0]
                for name, case in cases.items()
                if name == "gv-right-hash"
            )
            return [
                fault
                for name, case in cases.items()
                if (fault := await compare(client, name, case, old=old, new=current))
            ]

    assert asyncio.run(scenario()) == []


async def compare(client: Any, name: str, case: dict[str, Any], *, old: str, new: str) -> str | None:
    """What differs, in a line; None: nothing that should not."""
    asked = case["request"]
    target = asked["path"].replace(old, new).replace(old.lower(), new.lower())
    fields: dict[str, str] = {}
    for field, value in asked["headers"]:
        fields[field] = ", ".join(filter(None, [fields.get(field), value.replace(old, new)]))
    fields.pop("Content-Length", None)
    status, headers, body = await client.get(target, method=asked["method"], **fields)
    recorded = int(case["status"].split()[1])
    ours = OURS.get(name)
    # Its aggregator answers a stale hash with 502 for as long as it believes in the old one.
    wanted = ours.status if ours else 301 if recorded == 502 else recorded
    if status != wanted:
        return f"{name}: {status}, wanted {wanted}"
    theirs = dict(line.split(": ", 1) for line in case["headers"])
    if ours and ours.content_type and headers["Content-Type"] != ours.content_type:
        return f"{name}: {headers['Content-Type']}, wanted {ours.content_type}"
    if ours is None and status == 200 and not name.startswith("discovery") and "Content-Type" in theirs:
        if headers["Content-Type"] != theirs["Content-Type"]:
            return f"{name}: {headers['Content-Type']}, wanted {theirs['Content-Type']}"
        immutable = "immutable" in theirs["Cache-Control"] if "Cache-Control" in theirs else False
        if ("immutable" in headers["Cache-Control"]) != immutable:
            return f"{name}: {headers['Cache-Control']}, wanted {theirs.get('Cache-Control')}"
    if status == 301 and not headers["Location"].startswith("?"):
        return f"{name}: an absolute redirect"
    if status >= 400 and asked["method"] != "HEAD" and orjson.loads(body)["kind"] != "Status":
        return f"{name}: no Status"
    return None


def test_every_exception_is_about_a_recorded_case() -> None:
    recorded = {name for record in RECORDS for name in load(GOLDEN / "http" / record)}
    assert OURS.keys() <= recorded
