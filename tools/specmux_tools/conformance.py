"""The promises of KEP-2896 about ``/openapi/v3``, tested against any server that publishes it.

Each promise is tested by the requests that show it. A promise that could not be tested is reported as such,
and is not kept. Pure, apart from what ``ask`` does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import field
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import parse_qsl, urljoin, urlsplit

import orjson

from specmux_converters.codecs import decode
from specmux_converters.document import Limits, content_hash
from specmux_converters.errors import ConverterError, cut
from specmux_converters.json_values import mapping
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


Note = Callable[..., None]
"""Counts an attempt at a promise, by name, with its fault if there is one."""


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

    def note(name: str, fault: str | None = None) -> None:
        verdicts[name].tried += 1
        if fault is not None:
            verdicts[name].faults.append(fault)

    urls = _urls(await ask(ROOT, {"Accept": JSON}), note)
    async for key in _list_group_versions(ask):
        note("group-versions", None if key in urls else f"{cut(key)} is not in the root")
    for key, url in list(urls.items())[:most_documents]:
        await _try_document(ask, key, url, note)
    await _try_rest(ask, next(iter(urls.items()), None), note)
    return list(verdicts.values())


def _urls(answer: HTTPAnswer, note: Note) -> dict[str, str]:
    """The URLs of the documents in the root, by key."""
    paths = mapping(_json(answer.body)).get("paths")
    if answer.status != 200 or not isinstance(paths, dict):
        note("root", f'{answer.status}, and no JSON object with "paths"')
        return {}
    note("root")
    urls: dict[str, str] = {}
    for key, entry in paths.items():
        url = mapping(entry).get("serverRelativeURL")
        if not isinstance(url, str) or urlsplit(url).path != f"{ROOT}/{key}" or urlsplit(url).netloc:
            note("relative-urls", f"{cut(str(key))}: {cut(str(url))}")
            continue
        note("relative-urls")
        note("hash", None if _hash(url) else f"{cut(key)}: {cut(url)}")
        urls[key] = url
    return urls


async def _list_group_versions(ask: Ask) -> AsyncIterator[str]:
    """The group-versions of legacy discovery, which every server has."""
    core = _json((await ask("/api", {"Accept": JSON})).body)
    for version in core.get("versions", []) if isinstance(core, dict) else []:
        yield f"api/{version}"
    groups = _json((await ask("/apis", {"Accept": JSON})).body)
    for group in groups.get("groups", []) if isinstance(groups, dict) else []:
        for version in group.get("versions", []) if isinstance(group, dict) else []:
            yield f"apis/{version.get('groupVersion')}"


async def _try_document(ask: Ask, key: str, url: str, note: Note) -> None:
    answer = await ask(url, {"Accept": JSON, "Accept-Encoding": "identity"})
    version = mapping(_json(answer.body)).get("openapi")
    if answer.status != 200 or not str(version).startswith("3."):
        note("documents", f"{cut(key)}: {answer.status}, {len(answer.body)} bytes, no OpenAPI 3")
        return
    note("documents")
    hash = _hash(url)
    if hash:
        is_true = hash.upper() == content_hash(answer.body)
        note("true-hashes", None if is_true else f"{cut(key)}: {cut(hash)} is not the SHA-512 of its JSON")
        note("immutable", _immutable_fault(key, answer))
        await _try_stale(ask, key, url, note)
    await _try_forms(ask, key, url, answer, note)


def _immutable_fault(key: str, answer: HTTPAnswer) -> str | None:
    control = {part.strip().lower() for part in answer.field("cache-control").split(",")}
    age = next((part[8:] for part in control if part.startswith("max-age=")), None)
    seconds = _expires_in(answer) if age is None else int(age) if age.isdigit() else 0
    if "immutable" in control and "no-store" not in control and seconds >= 30 * 86400:
        return None
    return f"{cut(key)}: Cache-Control: {cut(answer.field('cache-control') or 'none')}"


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
    target = urljoin(path, answer.field("location"))
    query = dict(parse_qsl(urlsplit(target).query))
    if answer.status != 301 or urlsplit(target).path != path or query.get("hash") != _hash(url):
        note(
            "stale-hash", f"{cut(key)}: {answer.status}, Location: {cut(answer.field('location') or 'none')}"
        )
    else:
        is_whole = query.get("timeout") == "32s"
        note("stale-hash", None if is_whole else f"{cut(key)}: the redirect drops the other parameters")


async def _try_forms(ask: Ask, key: str, url: str, whole: HTTPAnswer, note: Note) -> None:
    etag = whole.field("etag")
    again = await ask(url, {"Accept": JSON, "Accept-Encoding": "identity", "If-None-Match": etag or '"none"'})
    is_conditional = bool(etag) and again.status == 304
    note("etag", None if is_conditional else f"{cut(key)}: ETag: {cut(etag or 'none')}, then {again.status}")
    note(
        "vary",
        None if "accept" in whole.field("vary").lower() else f"{cut(key)}: Vary: {whole.field('vary')}",
    )
    plain = await ask(urlsplit(url).path, {"Accept": JSON, "Accept-Encoding": "identity"})
    is_fresh = plain.status == 200 and "immutable" not in plain.field("cache-control").lower()
    note("without-hash", None if is_fresh else f"{cut(key)}: {plain.status}, {plain.field('cache-control')}")
    packed = await ask(url, {"Accept": JSON, "Accept-Encoding": "gzip"})
    is_packed = packed.field("content-encoding") == "gzip" or len(whole.body) < 128 * 1024
    note("gzip", None if is_packed else f"{cut(key)}: {len(whole.body)} bytes, not compressed")
    binary = await ask(url, {"Accept": PROTOBUF, "Accept-Encoding": "identity"})
    note("protobuf", _protobuf_fault(key, binary, whole))
    is_own = binary.field("etag") != etag or not etag
    note("distinct-etags", None if is_own else f"{cut(key)}: {cut(etag)} for both")


def _protobuf_fault(key: str, binary: HTTPAnswer, whole: HTTPAnswer) -> str | None:
    if binary.status != 200 or "protobuf" not in binary.field("content-type"):
        return f"{cut(key)}: {binary.status}, {cut(binary.field('content-type') or 'no Content-Type')}"
    try:
        document = decode(binary.body, PROTOBUF, limits=Limits())
    except ConverterError as error:
        return f"{cut(key)}: {error}"
    stated = _json(whole.body)
    is_same = all(
        _keys(document, *path) == _keys(stated, *path) for path in (("paths",), ("components", "schemas"))
    )
    return None if is_same else f"{cut(key)}: it has other paths or schemas than the JSON"


async def _try_rest(ask: Ask, first: tuple[str, str] | None, note: Note) -> None:
    unknown = await ask(f"{ROOT}/apis/no.such.group.example.org/v1", {"Accept": JSON})
    note("unknown", None if unknown.status == 404 else f"{unknown.status}, {len(unknown.body)} bytes")
    if first is not None:
        odd = await ask(first[1], {"Accept": "image/png"})
        note("not-acceptable", None if odd.status == 406 else f"{odd.status} for Accept: image/png")
        whole = await ask(first[1], {"Accept": JSON, "Accept-Encoding": "identity"})
        fewer = await ask(first[1], {"Accept": DROPPING, "Accept-Encoding": "identity"})
        is_same = (fewer.status, fewer.body) == (whole.status, whole.body)
        note(
            "accept-parameter",
            None if is_same else f"{fewer.status}, {len(fewer.body)} bytes for Accept: {DROPPING}",
        )
    root = await ask(ROOT, {"Accept": JSON})
    etag = root.field("etag")
    again = await ask(ROOT, {"Accept": JSON, "If-None-Match": etag or '"none"'})
    note(
        "root-etag", None if etag and again.status == 304 else f"ETag: {etag or 'none'}, then {again.status}"
    )


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


def _keys(document: Any, *path: str) -> set[str]:
    for name in path:
        document = mapping(document).get(name)
    return set(document) if isinstance(document, dict) else set()


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
