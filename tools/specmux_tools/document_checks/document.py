"""Check one document against its standard with openapi-spec-validator, and for faults that the library
misses.

Nothing outside the document is resolved. A megabyte takes seconds; recursive schemas that would exhaust the
library's stack are reported as not checked.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import chain
from typing import Any, Final

import yaml

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.snapshot import CheckSummary
from specmux_converters.counted_nouns import counted
from specmux_converters.crd import build
from specmux_converters.crd.manifest import shown_name
from specmux_converters.document import DEFAULT_LIMITS, Document, Limits
from specmux_converters.errors import ConverterError, cut
from specmux_converters.from_swagger2.conversion import convert_whole
from specmux_converters.group_versions import GroupVersion, group_version_of
from specmux_converters.json_values import mapping, members, within
from specmux_converters.losses import Grade, Loss, pointer_to, tokens_of
from specmux_converters.operations import GROUP_VERSION_KIND
from specmux_converters.recognise import DocumentKind, RecognisedInput, recognise
from specmux_converters.references import METHODS, references
from specmux_converters.releases import minor_release
from specmux_tools.document_checks.findings import DocumentFinding
from specmux_tools.reports import Level
from specmux_tools.validation.decoding.positions import Places
from specmux_tools.validation.definitions.faults import definition_faults
from specmux_tools.validation.last_applied import apply_hint

EXAMPLES_MAX: Final = 5
"""Findings of a published document that are listed; all are counted."""
_NICE_MAX: Final = 19
BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of the largest text that is parsed again for line numbers."""


def with_lines(findings: Sequence[DocumentFinding], data: bytes, document: Document) -> list[DocumentFinding]:
    """``document``: the parsed ``data``. A finding whose pointer does not exist has no line."""
    paths = [_path(document, finding.pointer) for finding in findings]
    places = Places(path for path in paths if path)
    if not any(paths) or len(data) > BYTES_MAX or not _read_places(data, places):
        return list(findings)
    found = []
    for finding, path in zip(findings, paths, strict=True):
        line, column = (places.of(path) if path else None) or (None, None)
        found.append(finding._replace(line=line, column=column))
    return found


def _read_places(data: bytes, places: Places) -> bool:
    """False if it is not text: Protobuf, CBOR."""
    try:
        text = data.decode("utf-8-sig")
        if text.lstrip()[:1] == "{":
            places.read_json(text)
        else:
            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            events = [*yaml.parse(text, Loader=loader)]
            places.read_yaml(events[2:])  # after the start of the stream and of the document
    except (UnicodeDecodeError, yaml.YAMLError, IndexError):
        return False
    return True


def _path(document: Document, pointer: str) -> tuple[str | int, ...]:
    """The pointer as keys and indexes, as far as it exists in the document."""
    node: Any = document
    path: list[str | int] = []
    for token in tokens_of(pointer):
        if isinstance(node, dict) and token in node:
            path.append(token)
            node = node[token]
        elif isinstance(node, list) and token.isdecimal() and int(token[:9]) < len(node):
            path.append(int(token))
            node = node[int(token)]
        else:
            break
    return tuple(path)


FINDINGS_MAX: Final = 1000
"""Findings of one document; further ones are counted in one."""

_NAMED: Final = {"dangling $ref": "reference", "circular $ref": "reference", "operationId": "operation-id"}
"""Losses that are faults of the document itself, with their rule."""

_BY_NAME: Final = ("operationIds", "securitySchemes")
"""Sections referred to by name rather than by reference."""


def check(
    data: bytes,
    group_version: GroupVersion | None = None,
    release: str | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[DocumentFinding, ...]:
    """The faults of a document in any form, sorted by level and place; definitions as ``release`` judges
    them. Never raises because of its content."""
    try:
        recognised = recognise(data, limits=limits)
        found = list(_findings(recognised, group_version, release))
    except ConverterError as error:
        return (DocumentFinding(Level.ERROR, "unread", error.pointer, error.reason),)
    found.sort(key=lambda each: ([*Level].index(each.level), each.pointer, each.rule, each.message))
    more = len(found) - FINDINGS_MAX
    if more > 0:
        found[FINDINGS_MAX:] = [DocumentFinding(Level.WARNING, "schema", "", f"and {more} more findings")]
    if recognised.kind is DocumentKind.CRDS and len(recognised.documents) > 1:
        return tuple(found)  # pointers are relative to one manifest each
    return tuple(with_lines(found, data, recognised.documents[0]))


def _findings(
    found: RecognisedInput, group_version: GroupVersion | None, release: str | None
) -> Iterator[DocumentFinding]:
    yield from map(_of_loss, found.losses)
    match found.kind:
        case DocumentKind.CRDS:
            yield from _of_definitions(found.documents, release)
        case DocumentKind.SWAGGER_2:
            (document,) = found.documents
            yield from against_standard(document, found.kind)
            yield from map(_of_loss, convert_whole(document, profile="kubernetes").losses)
        case DocumentKind.OPENAPI_3:
            (document,) = found.documents
            yield from against_standard(document, found.kind)
            yield from _find_dangling(document)
            yield from _find_repeated_ids(document)
            if group_version is not None:
                yield from _find_foreign_paths(document, group_version)


def _of_definitions(manifests: Sequence[Document], release: str | None) -> Iterator[DocumentFinding]:
    """Faults that an apiserver refuses, or that keep a definition from being published unchanged."""
    refused = set()
    for manifest in manifests:
        if (hint := apply_hint(manifest)) is not None:
            yield DocumentFinding(Level.NOTE, "definition", "", f"{shown_name(manifest)}: {hint}")
        for fault in definition_faults(manifest, minor=minor_release(release)):
            refused.add(shown_name(manifest))
            message = f"{shown_name(manifest)}: {fault.text}"
            yield DocumentFinding(Level.ERROR, "definition", pointer_to(*fault.path), message)
    for problem in build(manifests).problems:
        if problem.crd not in refused:
            message = f"{problem.crd}: {problem.reason}"
            yield DocumentFinding(Level.ERROR, "definition", problem.pointer, message)


def _of_loss(loss: Loss) -> DocumentFinding:
    rule = _NAMED.get(loss.construct, "loss")
    level = Level.ERROR if rule != "loss" else Level.WARNING if loss.grade is Grade.LOSS else Level.NOTE
    return DocumentFinding(level, rule, loss.pointer, f"{cut(loss.construct)}: {loss.reason}")


def _find_dangling(document: Document) -> Iterator[DocumentFinding]:
    for ref in sorted(references(document, "document")):
        tokens = tokens_of(ref)
        is_name = len(tokens) == 3 and tokens[1] in _BY_NAME
        if ref.startswith("#") and not is_name and len(_path(document, ref)) < len(tokens):
            reason = f"{cut(ref)} leads nowhere"
            yield DocumentFinding(Level.ERROR, "reference", _place_of(ref, document), reason)
        elif not ref.startswith("#"):
            reason = f"{cut(ref)} is outside the document; not checked"
            yield DocumentFinding(Level.ERROR, "unchecked", _place_of(ref, document), reason)


def _place_of(ref: str, document: Document) -> str:
    """The first place of a fault; "" if it is stated without ``$ref``."""
    waiting: list[tuple[Any, tuple[str | int, ...]]] = [(document, ())]
    while waiting:
        node, path = waiting.pop()
        if isinstance(node, dict) and node.get("$ref") == ref:
            return pointer_to(*path, "$ref")
        children = [*(node.items() if isinstance(node, dict) else enumerate(node))]
        waiting += [
            (child, (*path, key)) for key, child in reversed(children) if isinstance(child, dict | list)
        ]
    return ""


def _find_repeated_ids(document: Document) -> Iterator[DocumentFinding]:
    first: dict[str, str] = {}
    for path, item in _paths(document):
        for method in METHODS:
            name = within(item, method).get("operationId")
            if not isinstance(name, str):
                continue
            place = pointer_to("paths", path, method, "operationId")
            if first.setdefault(name, place) != place:
                yield DocumentFinding(
                    Level.ERROR, "operation-id", place, f"{cut(name)} is that of {first[name]}, too"
                )


def _find_foreign_paths(document: Document, group_version: GroupVersion) -> Iterator[DocumentFinding]:
    for path, _ in _paths(document):
        found = group_version_of(path)
        if found != group_version and path[:2] != "x-":
            whose = f"of {cut(found)}" if found else "of no group-version"
            message = f"is {whose}, in the document of {cut(group_version)}"
            yield DocumentFinding(Level.ERROR, "group-version", pointer_to("paths", path), message)


def _paths(document: Document) -> list[tuple[str, Any]]:
    return sorted(mapping(document.get("paths")).items())


_SCHEMES: Final = ("<all_urls>", "http", "https", "file", "")
_ZERO: Final[tuple[Any, ...]] = ({}, [], "", 0, False)
_HOPS_MAX: Final = 100
"""Longest chain of references."""


def against_standard(document: Document, kind: DocumentKind) -> Iterator[DocumentFinding]:
    """Errors; and one note for all defaults of Kubernetes that its own schemas do not allow."""
    is_kubernetes = _is_kubernetes(document)
    zeros: list[str] = []
    try:
        for error in _validator(document, kind).iter_errors():
            place = pointer_to(*_resolve_path(document, tuple(error.absolute_path)))
            if is_kubernetes and _is_zero_default(document, place):
                zeros.append(place)
            else:
                yield DocumentFinding(Level.ERROR, "schema", place, cut(error.message))
    except RecursionError:
        reason = (
            "a schema is made of itself, which openapi-spec-validator does not end on; not all was checked"
        )
        yield DocumentFinding(Level.ERROR, "unchecked", "", reason)
    except Exception as error:  # noqa: BLE001  # the library's own faults, on documents that are none
        reason = f"openapi-spec-validator ends with {type(error).__name__}: {cut(str(error))}"
        yield DocumentFinding(Level.ERROR, "unchecked", "", reason)
    if places := sorted(set(zeros)):
        # kube-openapi publishes Go's zero value for fields that are not pointers; no apiserver applies it.
        message = (
            f'{counted(len(places), "default")} of Kubernetes\' own, such as {{}} or "", are not valid by '
            "their schemas: zero values of Go, which no apiserver applies; the first is here"
        )
        yield DocumentFinding(Level.NOTE, "zero-default", places[0], message)


def _validator(document: Document, kind: DocumentKind) -> Any:
    from openapi_spec_validator import (
        OpenAPIV2SpecValidator,
        OpenAPIV30SpecValidator,
        OpenAPIV31SpecValidator,
    )

    def deny(uri: str) -> Any:
        raise LookupError(f"{cut(uri)} is outside the document; it is not fetched")

    validator: Any = OpenAPIV2SpecValidator
    if kind is DocumentKind.OPENAPI_3:
        is_3_0 = str(document["openapi"]).startswith("3.0")
        validator = OpenAPIV30SpecValidator if is_3_0 else OpenAPIV31SpecValidator
    keywords = {name: _add_paths(name, each) for name, each in validator.keyword_validators.items()}
    own = {"resolver_handlers": dict.fromkeys(_SCHEMES, deny), "keyword_validators": keywords}
    return type("Alone", (validator,), own)(_without_extensions(document))


def _add_paths(name: str, keyword: Any) -> Any:
    """A keyword validator whose errors have a path, which the library knows but does not expose."""

    def call(self: Any, *arguments: Any, **named: Any) -> Iterator[Any]:
        for error in keyword.__call__(self, *arguments, **named):
            if not hasattr(error, "is_placed"):
                paths = (each.parts for each in arguments if hasattr(each, "parts"))
                parts = (*next(paths, ()), *(["default"] if name == "default" else []))
                error.relative_path.extendleft(reversed(parts))
                error.is_placed = True
            yield error

    return type(keyword.__name__, (keyword,), {"__call__": call})


def _without_extensions(document: Document) -> Document:
    """Without the extensions of ``paths``, which are free-form: the library would take them for path
    items."""
    paths = document.get("paths")
    if not isinstance(paths, dict):
        return document
    return {**document, "paths": {key: item for key, item in paths.items() if key[:2] != "x-"}}


def _resolve_path(document: Document, path: Sequence[Any]) -> tuple[Any, ...]:
    """The actual path in the document of a path that leads through references."""
    found: list[Any] = []
    node: Any = document
    hops = 0
    for part in path:
        while isinstance(node, dict) and part not in node and hops < _HOPS_MAX:
            ref = node.get("$ref")
            if not isinstance(ref, str) or not ref.startswith("#"):
                break
            found, hops = [*tokens_of(ref)], hops + 1
            node = _node(document, found)
        found.append(part)
        node = _child(node, part)
    return tuple(found)


def _is_zero_default(document: Document, pointer: str) -> bool:
    tokens = tokens_of(pointer)
    for length, token in enumerate(tokens, 1):
        if token == "default":  # noqa: S105
            value = _node(document, tokens[:length])
            if any(value == zero and type(value) is type(zero) for zero in _ZERO):
                return True
    return False


def _node(document: Document, tokens: Sequence[Any]) -> Any:
    return reduce(_child, tokens, document)


def _child(node: Any, token: Any) -> Any:
    if isinstance(node, dict):
        return node.get(token)
    if isinstance(node, list) and str(token).isdecimal() and int(token) < len(node):
        return node[int(token)]
    return None


def _is_kubernetes(document: Document) -> bool:
    """Whether a kind or an operation has the group, version and kind that kube-openapi adds."""
    schemas = within(document, "components", "schemas") or document.get("definitions")
    operations = (each for _, item in members(document.get("paths")) for each in members(item))
    return any(GROUP_VERSION_KIND in each for _, each in chain(members(schemas), operations))


def check_published(body: bytes, group_version: GroupVersion, *, limits: Limits) -> CheckSummary:
    """For the service's worker process. ``body``: gzipped JSON. Runs at the lowest priority."""
    with contextlib.suppress(OSError):  # a sandbox may refuse it
        os.nice(_NICE_MAX)
    try:
        data = decode_body(body, Coding.GZIP, max_bytes=limits.max_bytes)
    except (BadCoding, TooLarge) as error:
        return CheckSummary(1, 0, (cut(str(error)),))
    findings = check(data, group_version, limits=limits)
    named = [
        f"{cut(finding.pointer) or '(document)'}: {finding.message} [{finding.rule}]" for finding in findings
    ]
    return CheckSummary(
        errors=sum(finding.level is Level.ERROR for finding in findings),
        warnings=sum(finding.level is Level.WARNING for finding in findings),
        examples=tuple(named[:EXAMPLES_MAX]),
    )
