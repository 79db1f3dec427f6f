"""How a kube-apiserver's answers differ from what ``specmux conformance`` tries, seen with 1.34.4 and 1.37.2
(docs/check.md says why)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

from specmux_tools.conformance import HTTPAnswer

KNOWN = frozenset({"stale-hash", "distinct-etags", "gzip", "root-etag"})

WITH_AGGREGATION = frozenset({"etag", "protobuf", "documents", "true-hashes"})
"""Of SHARED alone, where an extension apiserver is behind it."""

SHARED = ("apis", "version")
"""Documents that any server behind kube-aggregator may answer for."""


def as_kubernetes(target: str, fields: Mapping[str, str], answer: HTTPAnswer) -> HTTPAnswer:
    """The answer of a service as an apiserver would give it."""
    held = {name: value for name, value in answer.fields.items() if name != "content-encoding"}
    if target == "/openapi/v3":
        held.pop("etag", None)
        return replace(answer, fields=held, status=200)
    if answer.status == 301:
        held["location"] = held["location"].replace("timeout=32s&", "").replace("&timeout=32s", "")
    elif "immutable" in held.get("cache-control", ""):
        held["cache-control"] = "public, immutable"
        held |= {"date": "Tue, 24 Nov 2026 18:00:00 GMT", "expires": "Wed, 24 Nov 2027 18:00:00 GMT"}
    tag = f'"{dict(parse_qsl(urlsplit(target).query)).get("hash")}"'
    if answer.status == 200 and "hash=" in target:
        held["etag"] = tag
        if fields.get("If-None-Match") == tag:
            return HTTPAnswer(304, held, b"")
    return replace(answer, fields=held)
