"""Jobs of the process that checks objects: a body in, an apiserver's answer to it out.

Everything that the body decides happens here: reading it, finding its kind, checking it. A body that takes
too long or too much memory is refused in words; where that fails, the process is ended from outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

import orjson

from specmux_aggregator.questions.answers import QuestionRefusal
from specmux_aggregator.questions.state import QueryTooLong, ReaderState, Wants, limited_time
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_schemas.kind_places import built_in_kinds, place_of
from specmux_schemas.kinds import DocumentSet
from specmux_schemas.resources import GroupVersionKind, api_version, joined
from specmux_schemas.validation import Directive, Severity, ValidationReport, Validator
from specmux_schemas.validation.decoding.objects import Body, protobuf_text
from specmux_schemas.validation.decoding.streams import parts_of
from specmux_schemas.validation.kinds import LIST
from specmux_schemas.validation.media_types import READ, BodyFormat
from specmux_schemas.validation.messages import report_warnings, status_of, warning_fields
from specmux_schemas.validation.validator import kind_in, opened

VALIDATION_SECONDS: Final = 2.0  # of processor time

_SUCCESS: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 200}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationRequest:
    body: bytes
    format: BodyFormat
    directive: Directive
    wants_report: bool = False
    release: str | None = None
    """Whose rules count; None: the newest."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """An answer to an object: a Status, or the whole report with it."""

    code: int
    body: bytes
    is_valid: bool
    warnings: tuple[str, ...] = ()
    """Values of Warning fields; what is not Latin-1 is UTF-8 in them, a character for each byte."""


def validate(
    state: ReaderState, version: str, request: ValidationRequest
) -> Judgement | QuestionRefusal | Wants:
    if state.version != version:
        return Wants(None)
    try:
        with limited_time(VALIDATION_SECONDS):
            return _validated(state, request)
    except QueryTooLong:
        return QuestionRefusal(504, f"checking this object takes more than {VALIDATION_SECONDS:g} s")
    except MemoryError:
        return QuestionRefusal(413, "checking this object takes more memory than there is for it")
    except RecursionError:
        return QuestionRefusal(400, "the object is nested too deeply")


def _validated(state: ReaderState, request: ValidationRequest) -> Judgement | QuestionRefusal | Wants:
    if request.format is BodyFormat.YAML and len(list(islice(parts_of(request.body), 2))) > 1:
        return QuestionRefusal(400, "the body holds several objects; send each by itself")
    if request.format is BodyFormat.PROTOBUF:
        accepted = ", ".join(f"application/{form}" for form in READ)
        text = f"{protobuf_text(request.body)}; accepted media types include: {accepted}"
        return QuestionRefusal(415, text)
    source = opened(request.body, request.format, request.directive)
    if isinstance(source, ValidationReport):
        return _judged(source, request)
    kind = kind_in(source, request.directive)
    if isinstance(kind, ValidationReport):
        return _judged(kind, request)
    return _checked(state, source, kind, request)


def _checked(
    state: ReaderState, source: Body, kind: GroupVersionKind, request: ValidationRequest
) -> Judgement | QuestionRefusal | Wants:
    if kind == LIST:
        return QuestionRefusal(400, "a List holds objects of several kinds; send each of its items by itself")
    group_version = joined(kind.group, kind.version)
    hash = state.published.get(group_version)
    if hash is None:
        return _no_match(state, kind, (), otherwise="no document of that group and version is published")
    checker = state.derived(hash, partial(_checker, group_version))
    if checker is None:
        return Wants((group_version,))
    if checker.documents.find(kind) is None:
        return _no_match(state, kind, (each.kind for each in checker.documents))
    return _judged(checker.validator(request.release).validate_body(source, request.directive), request)


def _no_match(
    state: ReaderState, kind: GroupVersionKind, beside: Iterable[GroupVersionKind], *, otherwise: str = ""
) -> QuestionRefusal:
    """In kubectl's words, and where the kind is. ``beside``: the kinds of its group-version."""
    text = f'no matches for kind "{kind.kind}" in version "{api_version(kind.group, kind.version)}"'
    # Other documents are not read for it: of those that are published the usual kinds are known.
    usual = [each for each in built_in_kinds() if joined(each.group, each.version) in state.published]
    place = place_of(kind, [*beside, *usual])
    more = place.text if place is not None else otherwise
    return QuestionRefusal(404, f"{text}; {more}" if more else text)


class _Checker:
    """Of one document, and of the last release that was asked for."""

    def __init__(self, documents: DocumentSet) -> None:
        self.documents = documents
        self._last: tuple[str | None, Validator] | None = None

    def validator(self, release: str | None) -> Validator:
        if self._last is None or self._last[0] != release:
            self._last = release, Validator(self.documents, release=release)
        return self._last[1]


def _checker(group_version: GroupVersion, document: Document) -> _Checker:
    return _Checker(DocumentSet({group_version: document}))


def _judged(report: ValidationReport, request: ValidationRequest) -> Judgement:
    status = status_of(report)
    warnings = _warnings(report)
    fields = tuple(each.encode("utf-8", "replace").decode("latin-1") for each in warnings)
    if not request.wants_report:
        shown: dict[str, Any] = status or _SUCCESS
        return Judgement(shown["code"], orjson.dumps(shown), status is None, fields)
    told = {**report.as_document(), "warnings": warnings, "status": status or _SUCCESS}
    return Judgement(200, orjson.dumps(told), status is None, fields)


def _warnings(report: ValidationReport) -> list[str]:
    """An apiserver's, and one for each that could not be checked."""
    notes = [each.message for each in report.violations if each.severity is Severity.NOTE]
    return warning_fields([*report_warnings(report), *notes])
