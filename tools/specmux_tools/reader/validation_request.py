"""The content of a body for ``POST /openapi/validate``: an object, several, or a ValidationReview."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from specmux_converters.json_values import mapping
from specmux_converters.resources import GroupVersionKind
from specmux_tools.validation import Directive, InvalidDirective, UnsupportedMediaType
from specmux_tools.validation.decoding.body import Body
from specmux_tools.validation.decoding.lists import flattened, is_list, is_too_deep
from specmux_tools.validation.decoding.streams import parts_of
from specmux_tools.validation.media_types import APPLIES, BodyFormat, patch_type
from specmux_tools.validation.messages import parse_directive
from specmux_tools.validation.operation import Operation
from specmux_tools.validation.patching.patched_object import PatchRefusal, read_applied

REVIEW: Final = GroupVersionKind("specmux", "v1", "ValidationReview")

_FIELDS: Final = frozenset(
    ("apiVersion", "kind", "metadata", "operation", "object", "oldObject", "patch", "patchType", "options")
)
_OPTIONS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "PATCH": "PatchOptions"}


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
    """Questions in the order of the body; and whether it holds several objects. Raises BadReview."""
    parts = list(parts_of(body)) if form is BodyFormat.YAML else []
    if len(parts) <= 1:
        return _of_part(body, form, directive)
    found: list[ObjectQuestion] = []
    for part in parts:
        questions, _ = _of_part(part.data, part.format, directive)
        found += (replace(each, lines=part.line) for each in questions)
    return found, True


def _of_part(data: bytes, form: BodyFormat, directive: Directive) -> tuple[list[ObjectQuestion], bool]:
    body = Body.sent(data, form)
    if body.kind == REVIEW:
        return [_reviewed(body, directive)], False
    objects = [each for each in flattened(body) if is_too_deep(each) or not is_list(each.value)]
    operation = Operation(directive)
    return [ObjectQuestion(each, operation, each.kind) for each in objects], is_list(body.value)


def _reviewed(body: Body, directive: Directive) -> ObjectQuestion:
    """The request described by a ValidationReview. Raises BadReview."""
    review = body.value
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
    inside = body.inside("object")
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
