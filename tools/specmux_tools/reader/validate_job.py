"""Jobs of the process that checks objects: from a body to the answer of an apiserver.

All work that depends on the body happens here: parsing it, finding its kind, checking it. A body that takes
too long or too much memory is refused with a message; if that fails, the process is ended from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.http.messages import REASONS
from specmux_aggregator.reader.requests import (
    BODY_MAX,
    BODY_TYPES,
    Judgement,
    QuestionRefusal,
    ValidationRequest,
    Wants,
)
from specmux_converters.group_versions import join_group_version
from specmux_converters.json_values import mapping
from specmux_converters.resources import GroupVersionKind
from specmux_tools.kind_lifecycles import built_in_kinds, place_of
from specmux_tools.kinds import DocumentSet
from specmux_tools.processor_time import QueryTooLong, limited_time
from specmux_tools.reader.state import ReaderState
from specmux_tools.validation import (
    Directive,
    InvalidDirective,
    Severity,
    UnsupportedMediaType,
    ValidationReport,
    Validator,
)
from specmux_tools.validation.compiled_kinds import LIST
from specmux_tools.validation.decoding.body import Body, flatten, is_list, is_too_deep, protobuf_text
from specmux_tools.validation.decoding.streams import parts_of
from specmux_tools.validation.messages import (
    BLOCKED,
    generic_status,
    parse_directive,
    report_warnings,
    status_of,
    warning_fields,
)
from specmux_tools.validation.patching.patched_object import PatchRefusal, read_applied
from specmux_tools.validation.requests import APPLIES, READ, BodyFormat, Operation, body_format, patch_type

REVIEW: Final = GroupVersionKind("specmux", "v1", "ValidationReview")

_FIELDS: Final = frozenset(
    ("apiVersion", "kind", "metadata", "operation", "object", "oldObject", "patch", "patchType", "options")
)
_OPTIONS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "PATCH": "PatchOptions"}
VALIDATION_SECONDS: Final = 2.0  # of processor time
UNKNOWN_FORM: Final = (
    "the body of the request was in an unknown format - accepted media types include: "
    + ", ".join(BODY_TYPES)
)
_SUCCESS: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 200}


@dataclass(frozen=True, slots=True)
class ObjectQuestion:
    body: Body
    operation: Operation
    kind: GroupVersionKind | None
    """Names the document that is needed; None where the body does not say it."""
    lines: int = 0
    """Number of lines before the object in the body."""


class BadReview(Exception):
    """``status`` is the complete answer, if known."""

    def __init__(self, text: str, status: Mapping[str, Any] | None = None) -> None:
        super().__init__(text)
        self.status = status


def questions_in(body: bytes, form: BodyFormat, directive: Directive) -> tuple[list[ObjectQuestion], bool]:
    """Questions in the order of the body; and whether it holds several objects. Raises BadReview,
    InvalidDirective."""
    parts = list(parts_of(body)) if form is BodyFormat.YAML else []
    if len(parts) <= 1:
        return _of_part(body, form, directive)
    found: list[ObjectQuestion] = []
    for part in parts:
        questions, _ = _of_part(part.data, part.format, directive)
        found += (replace(each, lines=part.line) for each in questions)
    return found, True


def _of_part(data: bytes, form: BodyFormat, directive: Directive) -> tuple[list[ObjectQuestion], bool]:
    body = Body.receive(data, form)
    if body.kind == REVIEW:
        return [_review(body, directive)], False
    objects = [each for each in flatten(body) if is_too_deep(each) or not is_list(each.value)]
    operation = Operation(directive)
    return [ObjectQuestion(each, operation, each.kind) for each in objects], is_list(body.value)


def _review(body: Body, directive: Directive) -> ObjectQuestion:
    """The request described by a ValidationReview. Raises BadReview, InvalidDirective."""
    review = body.value
    for name in review:
        if name not in _FIELDS:
            raise BadReview(f'ValidationReview: unknown field "{name}"')
    operation = review.get("operation")
    if operation not in _OPTIONS:
        raise BadReview(f"ValidationReview: operation must be one of {', '.join(_OPTIONS)}")
    wanted = mapping(review.get("options") or {}).get("fieldValidation")
    if isinstance(wanted, str):
        directive = parse_directive(wanted, _OPTIONS[operation])
    wrong = next(_wrong_fields(review, operation), None)
    if wrong is not None:
        raise BadReview(f"ValidationReview: {wrong}")
    if operation == "PATCH":
        return _patch(review, directive)
    inside = body.enter("object")
    return ObjectQuestion(inside, Operation(directive, review.get("oldObject")), inside.kind)


def _wrong_fields(review: Mapping[str, Any], operation: str) -> Iterator[str]:
    """Names of fields that are missing, superfluous, or not objects."""
    needed = {"CREATE": ("object",), "UPDATE": ("object", "oldObject"), "PATCH": ("patch", "patchType")}
    unused = {"CREATE": ("oldObject", "patch", "patchType"), "UPDATE": ("patch", "patchType")}
    for name in needed[operation]:
        if review.get(name) is None:
            yield f"{operation} needs {name}"
    for name in unused.get(operation, ("object",)):
        if review.get(name) is not None:
            yield f"{operation} has no {name}"
    for name in ("object", "oldObject"):
        if review.get(name) is not None and not isinstance(review[name], dict):
            yield f"{name} must be an object"


def _patch(review: Mapping[str, Any], directive: Directive) -> ObjectQuestion:
    """The patch: a string is taken as the bytes of the request, anything else as their JSON. Its kind is that
    of the stored object, else of the applied one."""
    patch, old = review["patch"], review.get("oldObject")
    try:
        form = patch_type(str(review["patchType"]))
    except UnsupportedMediaType as error:
        raise BadReview(f"ValidationReview: patchType: {error}") from error
    data = patch.encode() if isinstance(patch, str) else orjson.dumps(patch, default=float)
    if old is None and form not in APPLIES:
        raise BadReview(f"ValidationReview: a patch of {form} needs oldObject")
    try:
        named = Body(b"", BodyFormat.JSON, old) if old is not None else read_applied(data, form)
    except PatchRefusal as refusal:
        raise BadReview(refusal.text, refusal.status) from refusal
    return ObjectQuestion(Body(data, BodyFormat.JSON), Operation(directive, old, patch=form), named.kind)


def validate(
    state: ReaderState, version: str, request: ValidationRequest
) -> Judgement | QuestionRefusal | Wants:
    if state.version != version:
        return Wants(None)
    try:
        with limited_time(VALIDATION_SECONDS):
            return _validate(state, request)
    except QueryTooLong:
        return QuestionRefusal(504, f"checking this object takes more than {VALIDATION_SECONDS:g} s")
    except MemoryError:
        return QuestionRefusal(413, "checking this object takes more memory than there is for it")
    except RecursionError:
        return QuestionRefusal(400, "the object is nested too deeply")


def _validate(state: ReaderState, request: ValidationRequest) -> Judgement | QuestionRefusal | Wants:
    try:
        body = decode_body(request.body, request.coding, max_bytes=BODY_MAX)
    except TooLarge:
        return QuestionRefusal(413, f"Request entity too large: limit is {BODY_MAX}")
    except BadCoding as error:
        return QuestionRefusal(400, f"the body of the request is malformed: {error}")
    try:
        form = body_format(request.media_type)
        directive = parse_directive(request.directive)
        if form is BodyFormat.PROTOBUF:
            accepted = ", ".join(f"application/{form}" for form in READ)
            return QuestionRefusal(415, f"{protobuf_text(body)}; accepted media types include: {accepted}")
        questions, are_several = questions_in(body, form, directive)
    except UnsupportedMediaType:
        return QuestionRefusal(415, UNKNOWN_FORM)
    except (BadReview, InvalidDirective) as error:
        if error.status is None:
            return QuestionRefusal(400, str(error))
        return Judgement(error.status["code"], orjson.dumps(error.status), False)
    judges = [_judge_of(state, each, request.release) for each in questions]
    wanted = [key for each in judges if isinstance(each, Wants) for key in each.group_versions or ()]
    if wanted:
        return Wants(tuple(dict.fromkeys(wanted)))
    found = [_answer(each, judge) for each, judge in zip(questions, judges, strict=True)]
    if are_several:
        return _together(found, request)
    return _judge(found[0], request) if isinstance(found[0], ValidationReport) else found[0]


def _judge_of(
    state: ReaderState, question: ObjectQuestion, release: str | None
) -> Validator | QuestionRefusal | Wants:
    """The validator of the kind. Without a kind, and for a List, it needs no document."""
    kind = question.kind
    if kind is None or kind == LIST:
        return Validator(DocumentSet({}))
    group_version = join_group_version(kind.group, kind.version)
    hash = state.published.get(group_version)
    if hash is None:
        return _no_match(state, kind, (), otherwise="no document of that group and version is published")
    checker = state.derive(hash, lambda document: _Checker(DocumentSet({group_version: document})))
    if checker is None:
        return Wants((group_version,))
    if checker.documents.find(kind) is None:
        return _no_match(state, kind, (each.kind for each in checker.documents))
    return checker.validator(release)


def _answer(
    question: ObjectQuestion, judge: Validator | QuestionRefusal | Wants
) -> ValidationReport | QuestionRefusal:
    if isinstance(judge, Validator):
        return judge.judge(question.body, question.operation).move_lines(question.lines)
    return judge if isinstance(judge, QuestionRefusal) else QuestionRefusal(503, "no document is there")


def _together(found: Sequence[ValidationReport | QuestionRefusal], request: ValidationRequest) -> Judgement:
    """The answer to several objects: a List with a Status or report for each, with the most severe status
    code."""
    statuses = [_status(each) for each in found]
    reports = [each for each in found if isinstance(each, ValidationReport)]
    warnings = warning_fields([text for each in reports for text in _texts(each)])
    fields = tuple(map(_latin, warnings))
    code = max((status["code"] for status in statuses), default=200)
    items: list[Any] = statuses
    if request.wants_report:
        items = [
            _with_report(each, status)
            if isinstance(each, ValidationReport)
            else {"valid": False, "status": status}
            for each, status in zip(found, statuses, strict=True)
        ]
    body = orjson.dumps({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items})
    return Judgement(200 if request.wants_report else code, body, code == 200, fields)


def _status(found: ValidationReport | QuestionRefusal) -> dict[str, Any]:
    """The Status of one object among several; it names the object."""
    if isinstance(found, QuestionRefusal):
        return generic_status(found.code, REASONS[found.code], found.message)
    status = status_of(found) or dict(_SUCCESS)
    if found.kind is not None and "details" not in status:
        status["details"] = {"name": found.name, "group": found.kind.group, "kind": found.kind.kind}
    return status


def _with_report(found: ValidationReport, status: Mapping[str, Any]) -> dict[str, Any]:
    return {**found.as_document(), "warnings": warning_fields(_texts(found)), "status": status}


def _no_match(
    state: ReaderState, kind: GroupVersionKind, beside: Iterable[GroupVersionKind], *, otherwise: str = ""
) -> QuestionRefusal:
    """The refusal of an unknown kind in kubectl's words, with the group-versions that have it. ``beside``:
    the kinds of its group-version."""
    text = f'no matches for kind "{kind.kind}" in version "{kind.api_version}"'
    # No further documents are read for this message: well-known kinds are recognized in those already known.
    usual = [
        each for each in built_in_kinds() if join_group_version(each.group, each.version) in state.published
    ]
    place = place_of(kind, [*beside, *usual])
    more = place.text if place is not None else otherwise
    return QuestionRefusal(404, f"{text}; {more}" if more else text)


class _Checker:
    """Checks objects of one document, by the rules of the last release used."""

    def __init__(self, documents: DocumentSet) -> None:
        self.documents = documents
        self._last: tuple[str | None, Validator] | None = None

    def validator(self, release: str | None) -> Validator:
        if self._last is None or self._last[0] != release:
            self._last = release, Validator(self.documents, release=release)
        return self._last[1]


def _judge(report: ValidationReport, request: ValidationRequest) -> Judgement:
    status = status_of(report)
    shown: dict[str, Any] = status or _SUCCESS
    fields = tuple(map(_latin, warning_fields(_texts(report))))
    if not request.wants_report:
        return Judgement(shown["code"], orjson.dumps(shown), status is None, fields)
    return Judgement(200, orjson.dumps(_with_report(report, shown)), status is None, fields)


def _latin(field: str) -> str:
    return field.encode("utf-8", "replace").decode("latin-1")


def _texts(report: ValidationReport) -> list[str]:
    """An apiserver's warnings, and one for each thing that could not be checked."""
    notes = [
        each.message
        for each in report.violations
        if each.severity is Severity.NOTE and each.message != BLOCKED  # that one is a cause in the Status
    ]
    return [*report_warnings(report), *notes]
