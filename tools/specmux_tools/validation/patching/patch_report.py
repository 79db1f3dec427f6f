"""Judge a patch: combine the reports of its decoding and of the resulting update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

import orjson

from specmux_converters.errors import ConverterError
from specmux_converters.json_values import mapping
from specmux_converters.resources import GroupVersionKind
from specmux_tools.kinds import KindSchema
from specmux_tools.validation.compiled_kinds import CompiledKind
from specmux_tools.validation.decoding.body import Body
from specmux_tools.validation.decoding.type_meta import read_type_meta
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.messages import (
    bad_request,
    patch_status,
    strict_message,
    unclassified_status,
    warning_texts,
)
from specmux_tools.validation.patching.patched_object import (
    PatchedObject,
    PatchRefusal,
    apply_configuration,
    apply_patch,
    kind_text,
    name_object,
    read_applied,
)
from specmux_tools.validation.patching.server_side_apply import ApplyTypes
from specmux_tools.validation.report import Check, Directive, Severity, ValidationReport, Violation
from specmux_tools.validation.requests import APPLIES, BodyFormat, Operation, PatchType
from specmux_tools.validation.stored_objects import key_of

_SEVERITIES: Final = {Directive.STRICT: Severity.ERROR, Directive.WARN: Severity.WARNING}


class ObjectValidator(Protocol):
    """The part of Validator that patches need."""

    def describe(self, body: Body) -> tuple[KindSchema, CompiledKind] | None: ...

    def apply_types(self, described: KindSchema, kind: CompiledKind) -> ApplyTypes: ...

    def judge(self, body: Body, operation: Operation) -> ValidationReport: ...


def judge_patch(
    validator: ObjectValidator, body: bytes, form: PatchType, operation: Operation
) -> ValidationReport:
    """Raises ValueError for a patch of nothing."""
    old, directive = operation.stored, operation.directive
    if old is None and form not in APPLIES:
        raise ValueError(f"{form} needs a stored object")
    source = None
    try:
        source = read_applied(body, form) if form in APPLIES else None
        if source is not None and old is not None:
            _check_kind(source, old)
        stored = source or _as_body(old)
        found = validator.describe(stored)
        if found is None:
            return validator.judge(stored, Operation(directive))
        if source is None:
            made = apply_patch(old or {}, body, form, *found)
        else:
            made = _apply(validator, old, source, *found)
    except Undecodable as error:
        return _refuse(error.text, bad_request(error.text), operation, old)
    except PatchRefusal as refusal:
        about = old if old is not None else source and source.value
        return _refuse(refusal.text, refusal.status, operation, about)
    return _judge(validator, old, made, form, directive)


def _apply(
    validator: ObjectValidator,
    old: dict[str, Any] | None,
    source: Body,
    described: KindSchema,
    kind: CompiledKind,
) -> PatchedObject:
    try:
        types = validator.apply_types(described, kind)
    except ConverterError as error:
        text = f"the schema for server-side apply cannot be made: {error.reason}"
        return PatchedObject(source.value, unread=text)
    return apply_configuration(old, source, types, described)


def _check_kind(source: Body, old: dict[str, Any]) -> None:
    """The kind must be that of the URL. Raises PatchRefusal, Undecodable."""
    given = source.type_meta()
    if given != read_type_meta(old):
        text = f"invalid object type: {kind_text(given)}"
        raise PatchRefusal(text, bad_request(text))


def _judge(
    validator: ObjectValidator,
    old: dict[str, Any] | None,
    made: PatchedObject,
    form: PatchType,
    directive: Directive,
) -> ValidationReport:
    is_lenient = made.is_converted or form in APPLIES
    # Go serialized it with sorted keys; read it in that order.
    made_body = _as_body(made.value, is_sorted=not is_lenient)
    report = validator.judge(made_body, Operation(Directive.IGNORE if is_lenient else directive, old))
    own = () if directive is Directive.IGNORE else made.strict
    strict = (*own, *report.strict_errors)
    violations = [
        *(_strict_violation(text, directive) for text in warning_texts(own)),
        *(replace(each, line=None, column=None) for each in report.violations),
    ]
    if made.unread:
        violations.append(Violation(Severity.NOTE, Check.NOT_CHECKED, (), made.unread))
    if report.fatal is not None and form in APPLIES:
        status: Mapping[str, Any] | None = _list_unconverted(made.value, report.fatal)
    else:
        status = _status(report, made, form, directive, strict)
    return replace(
        report,
        directive=directive,
        violations=tuple(violations),
        strict_errors=strict,
        fatal=None,
        status=status,
    )


def _status(
    report: ValidationReport,
    made: PatchedObject,
    form: PatchType,
    directive: Directive,
    strict: tuple[str, ...],
) -> Mapping[str, Any] | None:
    if report.fatal is not None:
        return patch_status(made.shown, report.fatal)
    if strict and directive is Directive.STRICT:
        if form in APPLIES:
            return bad_request(f"error strict decoding patch: {strict[0]}")
        return patch_status(made.shown, strict_message(strict))
    # The URL identifies the object without a uid: a different one is an error of its metadata.
    is_uid = report.status is not None and "UID in precondition" in str(report.status.get("message"))
    return None if is_uid else report.status


def _list_unconverted(value: Any, fatal: str) -> dict[str, Any]:
    """The result for an applied object that its schema accepts and its Go type does not."""
    found = read_type_meta(value)
    place, kind = name_object(value, found), kind_text(found)
    return unclassified_status(
        f"failed to convert new object ({place}) to proper version: "
        f"unable to convert unstructured object to {kind}: error decoding from json: {fatal}"
    )


def _strict_violation(text: str, directive: Directive) -> Violation:
    check = Check.UNKNOWN_FIELD if "unknown field" in text else Check.DUPLICATE_FIELD
    return Violation(_SEVERITIES[directive], check, (), text)


def _refuse(text: str, status: Mapping[str, Any], operation: Operation, value: Any) -> ValidationReport:
    key = key_of(mapping(value))
    version = str(mapping(value).get("apiVersion")).rpartition("/")[2]
    return ValidationReport(
        GroupVersionKind(key.group, version, key.kind) if isinstance(value, dict) else None,
        operation.directive,
        (Violation(Severity.ERROR, Check.DECODING, (), text),),
        name=key.name,
        namespace=key.namespace,
        is_update=operation.stored is not None,
        status=status,
    )


def _as_body(value: Any, *, is_sorted: bool = False) -> Body:
    data = orjson.dumps(value, default=float, option=orjson.OPT_SORT_KEYS if is_sorted else None)
    return Body(data, BodyFormat.JSON, orjson.loads(data), is_plain=True)
