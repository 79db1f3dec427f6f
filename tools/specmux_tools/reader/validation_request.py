"""The content of a body for ``POST /openapi/validate``: an object, several, or a ValidationReview."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from specmux_converters.json_values import mapping
from specmux_converters.resources import GroupVersionKind
from specmux_tools.validation import (
    Directive,
    InvalidDirective,
    UnsupportedMediaType,
    ValidationReport,
    Validator,
)
from specmux_tools.validation.decoding.lists import flattened, is_list, is_too_deep
from specmux_tools.validation.decoding.objects import Body
from specmux_tools.validation.decoding.streams import parts_of
from specmux_tools.validation.media_types import BodyFormat
from specmux_tools.validation.messages import parse_directive
from specmux_tools.validation.patching.patch_types import APPLIES, PatchType, patch_type
from specmux_tools.validation.patching.patched_object import PatchRefusal, read_applied
from specmux_tools.validation.validator import kind_in, opened

REVIEW: Final = GroupVersionKind("specmux", "v1", "ValidationReview")

_FIELDS: Final = frozenset(
    ("apiVersion", "kind", "metadata", "operation", "object", "oldObject", "patch", "patchType", "options")
)
_OPTIONS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "PATCH": "PatchOptions"}


@dataclass(frozen=True, slots=True)
class ObjectQuestion:
    """``kind`` names the document that is needed; ``judge`` is called with its validator."""

    kind: GroupVersionKind
    judge: Callable[[Validator], ValidationReport]
    lines: int = 0
    """Number of lines before the object in the body."""


class BadReview(Exception):
    """``status`` is the complete answer, if known."""

    def __init__(self, text: str, status: Mapping[str, Any] | None = None) -> None:
        super().__init__(text)
        self.status = status


def questions_in(
    body: bytes, form: BodyFormat, directive: Directive
) -> tuple[list[ObjectQuestion | ValidationReport], bool]:
    """Questions, or reports on objects that cannot be parsed, in the order of the body; and whether it holds
    several objects. Raises BadReview."""
    parts = list(parts_of(body)) if form is BodyFormat.YAML else []
    if len(parts) <= 1:
        return _of_part(body, form, directive)
    found: list[ObjectQuestion | ValidationReport] = []
    for part in parts:
        found += (_moved(each, part.line) for each in _of_part(part.data, part.format, directive)[0])
    return found, True


def _moved(question: ObjectQuestion | ValidationReport, lines: int) -> ObjectQuestion | ValidationReport:
    if isinstance(question, ValidationReport):
        return question.moved(lines)
    return ObjectQuestion(question.kind, question.judge, lines)


def _of_part(
    body: bytes, form: BodyFormat, directive: Directive
) -> tuple[list[ObjectQuestion | ValidationReport], bool]:
    source = opened(body, form, directive)
    if isinstance(source, ValidationReport):
        return [source], False
    if kind_in(source, directive) == REVIEW:
        return [_reviewed(source, directive)], False
    objects = [each for each in flattened(source) if is_too_deep(each) or not is_list(each.value)]
    return [_plain(each, kind_in(each, directive), directive) for each in objects], is_list(source.value)


def _plain(
    source: Body, kind: GroupVersionKind | ValidationReport, directive: Directive
) -> ObjectQuestion | ValidationReport:
    if isinstance(kind, ValidationReport):
        return kind
    return ObjectQuestion(kind, lambda validator: validator.validate_body(source, directive))


def _reviewed(source: Body, directive: Directive) -> ObjectQuestion | ValidationReport:
    """The request described by a ValidationReview. Raises BadReview."""
    review = source.value
    for name in review:
        if name not in _FIELDS:
            raise BadReview(f'ValidationReview: unknown field "{name}"')
    operation = review.get("operation")
    if operation not in _OPTIONS:
        raise BadReview(f"ValidationReview: operation must be one of {', '.join(_OPTIONS)}")
    wanted = mapping(review.get("options") or {}).get("fieldValidation")
    if isinstance(wanted, str):
        try:
            directive = parse_directive(wanted, _OPTIONS[operation])
        except InvalidDirective as error:
            raise BadReview(error.text, error.status) from error
    wrong = next(_wrong_fields(review, operation), None)
    if wrong is not None:
        raise BadReview(f"ValidationReview: {wrong}")
    if operation == "PATCH":
        return _patch(review, directive)
    inside = source.inside("object")
    kind = kind_in(inside, directive)
    if isinstance(kind, ValidationReport):
        return kind
    old = review.get("oldObject")
    return ObjectQuestion(kind, lambda validator: validator.validate_body(inside, directive, old))


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


def _patch(review: Mapping[str, Any], directive: Directive) -> ObjectQuestion | ValidationReport:
    """The patch: a string is taken as the bytes of the request, anything else as their JSON."""
    patch, old = review["patch"], review.get("oldObject")
    try:
        form = patch_type(str(review["patchType"]))
    except UnsupportedMediaType as error:
        raise BadReview(f"ValidationReview: patchType: {error}") from error
    body = patch.encode() if isinstance(patch, str) else orjson.dumps(patch, default=float)
    if old is None and form not in APPLIES:
        raise BadReview(f"ValidationReview: a patch of {form} needs oldObject")
    kind = _kind_of_patch(body, form, old, directive)
    if isinstance(kind, ValidationReport):
        return kind
    return ObjectQuestion(kind, lambda validator: validator.patch(old, body, form, directive))


def _kind_of_patch(
    body: bytes, form: PatchType, old: dict[str, Any] | None, directive: Directive
) -> GroupVersionKind | ValidationReport:
    """The kind of the stored object, else of the applied one."""
    if old is not None:
        return kind_in(Body(b"", BodyFormat.JSON, old), directive)
    try:
        return kind_in(read_applied(body, form), directive)
    except PatchRefusal as refusal:
        raise BadReview(refusal.text, refusal.status) from refusal
