"""The promises of KEP-2896 about ``/openapi/v3``, tested against any server that publishes it.

Each promise is tested by the requests that show it. A promise that could not be tested is reported as such,
and is not kept. Pure, apart from what ``ask`` does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import field
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, urljoin, urlsplit

import orjson

from specmux_converters.codecs import decode
from specmux_converters.document import Limits, content_hash
from specmux_converters.errors import ConverterError, cut
from specmux_converters.json_values import array, mapping, objects, text, within
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.media_types import JSON, PROTOBUF
from specmux_tools.reports import Case, FindingReport, Level, ReportFinding, Suite, Where

ROOT: Final = "/openapi/v3"
DROPPING: Final = f"{JSON};drop=metadata.managedFields"
"""The form that clients of 1.38 may ask for of any resource: an apiserver without the gate ignores the
parameter."""
FAULTS_MAX: Final = 5
"""Faults of one promise that are listed; further ones are counted."""


@dataclass(frozen=True, slots=True)
class HTTPAnswer:
    """An answer; redirects are not followed. Names in ``fields`` are in lower case."""

    status: int
    fields: Mapping[str, str]
    body: bytes

    def field(self, name: str) -> str:
        return self.fields.get(name, "")


Ask = Callable[[str, Mapping[str, str]], Awaitable[HTTPAnswer]]
"""Sends a GET for a target with header fields, without following redirects."""


Note = Callable[[str, bool, str], None]
"""Counts an attempt at a promise, by name; whether it was kept, and else the fault."""


@dataclass(frozen=True, slots=True)
class Promise:
    """``is_required``: whether KEP-2896 or clients depend on it; otherwise it is advice."""

    name: str
    text: str
    is_required: bool = True


PROMISES: Final = (
    Promise("root", 'GET /openapi/v3 is JSON with an object "paths" (KEP-2896, Implementation)'),
    Promise("relative-urls", "every serverRelativeURL is below /openapi/v3, of the key that it stands for"),
    Promise("hash", "every serverRelativeURL has a hash (KEP-2896, E-Tag Header)"),
    Promise("group-versions", "every group-version of /api and /apis is in the root"),
    Promise("documents", "every document is OpenAPI 3 in JSON, and 200"),
    Promise("true-hashes", "a hash is the SHA-512 of the document, as in Kubernetes", is_required=False),
    Promise("immutable", "a document under its hash is immutable and public, and expires in months"),
    Promise("stale-hash", "another hash is a 301 to the current one, with the other parameters"),
    Promise("etag", "a document has an ETag, and 304 for it"),
    Promise("without-hash", "a document without a hash is 200 and not immutable"),
    Promise("protobuf", "a document is Protobuf where a client asks for it, and says the same"),
    Promise("vary", "answers vary by Accept"),
    Promise("distinct-etags", "JSON and Protobuf have ETags of their own", is_required=False),
    Promise("gzip", "a document is compressed for who takes gzip", is_required=False),
    Promise("unknown", "an unknown group-version is 404", is_required=False),
    Promise("not-acceptable", "a media type that nobody has is 406", is_required=False),
    Promise(
        "accept-parameter",
        "a parameter of Accept that says nothing of documents changes none (KEP-5958: drop)",
        is_required=False,
    ),
    Promise("root-etag", "the root has an ETag, and 304 for it", is_required=False),
)


@dataclass(slots=True)
class Verdict:
    """The result for one promise. ``tried``: number of requests."""

    promise: Promise
    tried: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def is_kept(self) -> bool:
        return self.tried > 0 and not self.faults


async def try_promises(ask: Ask, *, most_documents: int | None = None) -> list[Verdict]:
    """All promises, in order. ``most_documents``: how many to test; None: all. Raises what ``ask`` raises."""
    verdicts = {promise.name: Verdict(promise) for promise in PROMISES}

    def note(name: str, is_kept: bool, fault: str) -> None:
        verdicts[name].tried += 1
        if not is_kept:
            verdicts[name].faults.append(fault)

    urls = _urls(await ask(ROOT, {"Accept": JSON}), note)
    async for key in _list_group_versions(ask):
        note("group-versions", key in urls, f"{cut(key)} is not in the root")
    for key, url in list(urls.items())[:most_documents]:
        await _try_document(ask, key, url, note)
    await _try_rest(ask, next(iter(urls.items()), None), note)
    return list(verdicts.values())


def _urls(answer: HTTPAnswer, note: Note) -> dict[str, str]:
    """The URLs of the documents in the root, by key."""
    paths = mapping(_json(answer.body)).get("paths")
    is_root = answer.status == 200 and isinstance(paths, dict)
    note("root", is_root, f'{answer.status}, and no JSON object with "paths"')
    urls: dict[str, str] = {}
    for key, entry in mapping(paths if is_root else None).items():
        url = text(mapping(entry).get("serverRelativeURL"))
        parts = _split_url(url)
        is_relative = parts.path == f"{ROOT}/{key}" and not parts.netloc
        note("relative-urls", is_relative, f"{cut(key)}: {cut(url or 'none')}")
        if is_relative:
            note("hash", bool(_hash(url)), f"{cut(key)}: {cut(url)}")
            urls[key] = url
    return urls


async def _list_group_versions(ask: Ask) -> AsyncIterator[str]:
    """The group-versions of legacy discovery, which every server has."""
    core = mapping(_json((await ask("/api", {"Accept": JSON})).body))
    for name in array(core.get("versions")):
        yield f"api/{name}"
    groups = mapping(_json((await ask("/apis", {"Accept": JSON})).body))
    for group in objects(groups.get("groups")):
        for version in objects(group.get("versions")):
            yield f"apis/{version.get('groupVersion')}"


async def _try_document(ask: Ask, key: str, url: str, note: Note) -> None:
    answer = await ask(url, {"Accept": JSON, "Accept-Encoding": "identity"})
    version = mapping(_json(answer.body)).get("openapi")
    is_document = answer.status == 200 and str(version).startswith("3.")
    note("documents", is_document, f"{cut(key)}: {answer.status}, {len(answer.body)} bytes, no OpenAPI 3")
    if not is_document:
        return
    hash = _hash(url)
    if hash:
        is_true = hash.upper() == content_hash(answer.body)
        note("true-hashes", is_true, f"{cut(key)}: {cut(hash)} is not the SHA-512 of its JSON")
        said = cut(answer.field("cache-control") or "none")
        note("immutable", _is_immutable(answer), f"{cut(key)}: Cache-Control: {said}")
        await _try_stale(ask, key, url, note)
    await _try_forms(ask, key, url, answer, note)


def _is_immutable(answer: HTTPAnswer) -> bool:
    control = {part.strip().lower() for part in answer.field("cache-control").split(",")}
    age = next((part[8:] for part in control if part.startswith("max-age=")), None)
    seconds = _expires_in(answer) if age is None else int(age) if age.isdigit() else 0
    return "immutable" in control and "no-store" not in control and seconds >= 30 * 86400


def _expires_in(answer: HTTPAnswer) -> float:
    """Seconds until Expires, which applies without max-age (RFC 9111 5.3)."""
    try:
        expires, date = (parsedate_to_datetime(answer.field(name)) for name in ("expires", "date"))
        return (expires - date).total_seconds()
    except (ValueError, TypeError):
        return 0


async def _try_stale(ask: Ask, key: str, url: str, note: Note) -> None:
    path = urlsplit(url).path
    answer = await ask(f"{path}?hash={'0' * 128}&timeout=32s", {"Accept": JSON})
    target = _split_url(answer.field("location"), base=path)
    query = dict(parse_qsl(target.query))
    if answer.status != 301 or target.path != path or query.get("hash") != _hash(url):
        told = cut(answer.field("location") or "none")
        note("stale-hash", False, f"{cut(key)}: {answer.status}, Location: {told}")
    else:
        is_whole = query.get("timeout") == "32s"
        note("stale-hash", is_whole, f"{cut(key)}: the redirect drops the other parameters")


async def _try_forms(ask: Ask, key: str, url: str, whole: HTTPAnswer, note: Note) -> None:
    etag = whole.field("etag")
    again = await ask(url, {"Accept": JSON, "Accept-Encoding": "identity", "If-None-Match": etag or '"none"'})
    is_conditional = bool(etag) and again.status == 304
    note("etag", is_conditional, f"{cut(key)}: ETag: {cut(etag or 'none')}, then {again.status}")
    note("vary", "accept" in whole.field("vary").lower(), f"{cut(key)}: Vary: {whole.field('vary')}")
    plain = await ask(urlsplit(url).path, {"Accept": JSON, "Accept-Encoding": "identity"})
    is_fresh = plain.status == 200 and "immutable" not in plain.field("cache-control").lower()
    note("without-hash", is_fresh, f"{cut(key)}: {plain.status}, {plain.field('cache-control')}")
    packed = await ask(url, {"Accept": JSON, "Accept-Encoding": "gzip"})
    is_packed = packed.field("content-encoding") == "gzip" or len(whole.body) < 128 * 1024
    note("gzip", is_packed, f"{cut(key)}: {len(whole.body)} bytes, not compressed")
    binary = await ask(url, {"Accept": PROTOBUF, "Accept-Encoding": "identity"})
    fault = _protobuf_fault(binary, whole)
    note("protobuf", not fault, f"{cut(key)}: {fault}")
    is_own = binary.field("etag") != etag or not etag
    note("distinct-etags", is_own, f"{cut(key)}: {cut(etag)} for both")


def _protobuf_fault(binary: HTTPAnswer, whole: HTTPAnswer) -> str:
    if binary.status != 200 or "protobuf" not in binary.field("content-type"):
        return f"{binary.status}, {cut(binary.field('content-type') or 'no Content-Type')}"
    try:
        document = decode(binary.body, PROTOBUF, limits=Limits())
    except ConverterError as error:
        return str(error)
    stated = _json(whole.body)
    parts = (("paths",), ("components", "schemas"))
    is_same = all(within(document, *path).keys() == within(stated, *path).keys() for path in parts)
    return "" if is_same else "it has other paths or schemas than the JSON"


async def _try_rest(ask: Ask, first: tuple[str, str] | None, note: Note) -> None:
    unknown = await ask(f"{ROOT}/apis/no.such.group.example.org/v1", {"Accept": JSON})
    note("unknown", unknown.status == 404, f"{unknown.status}, {len(unknown.body)} bytes")
    if first is not None:
        odd = await ask(first[1], {"Accept": "image/png"})
        note("not-acceptable", odd.status == 406, f"{odd.status} for Accept: image/png")
        whole = await ask(first[1], {"Accept": JSON, "Accept-Encoding": "identity"})
        fewer = await ask(first[1], {"Accept": DROPPING, "Accept-Encoding": "identity"})
        is_same = (fewer.status, fewer.body) == (whole.status, whole.body)
        told = f"{fewer.status}, {len(fewer.body)} bytes for Accept: {DROPPING}"
        note("accept-parameter", is_same, told)
    root = await ask(ROOT, {"Accept": JSON})
    etag = root.field("etag")
    again = await ask(ROOT, {"Accept": JSON, "If-None-Match": etag or '"none"'})
    is_conditional = bool(etag) and again.status == 304
    note("root-etag", is_conditional, f"ETag: {etag or 'none'}, then {again.status}")


def report_of(server: str, verdicts: list[Verdict]) -> FindingReport:
    kept = sum(verdict.is_kept for verdict in verdicts)
    return FindingReport(
        command="specmux conformance",
        title=f"KEP-2896 at {server}",
        suites=(Suite(server, tuple(_case(server, verdict) for verdict in verdicts)),),
        document={
            "server": server,
            "promises": [
                {
                    "name": verdict.promise.name,
                    "promise": verdict.promise.text,
                    "required": verdict.promise.is_required,
                    "kept": verdict.is_kept,
                    "tried": verdict.tried,
                    "faults": verdict.faults,
                }
                for verdict in verdicts
            ],
        },
        summary=f"{kept} of {len(verdicts)} promises kept at {server}",
        rules={promise.name: promise.text for promise in PROMISES},
        shows_rules=True,
        is_placed=False,
    )


def _case(server: str, verdict: Verdict) -> Case:
    promise = verdict.promise
    faults = verdict.faults or ([] if verdict.tried else ["it could not be tried"])
    more = len(faults) - FAULTS_MAX
    level = Level.ERROR if promise.is_required else Level.WARNING
    findings = (
        ReportFinding(
            rule=promise.name,
            level=level,
            message=fault + (f" (and {more} more)" if index == FAULTS_MAX - 1 and more > 0 else ""),
            where=Where(server),
            subject=promise.name,
            fails=promise.is_required,
        )
        for index, fault in enumerate(faults[:FAULTS_MAX])
    )
    return Case(promise.text, "specmux.conformance", tuple(findings))


def _hash(url: str) -> str:
    query = dict(parse_qsl(urlsplit(url).query))
    return query.get("hash") or query.get("etag") or ""


def _split_url(url: str, base: str = "") -> SplitResult:
    """No parts where it is no URL, such as ``//[``."""
    try:
        return urlsplit(urljoin(base, url))
    except ValueError:
        return urlsplit("")


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
