"""A patch judged: the reports of its own reading and of the update that it makes, as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from specmux_converters.errors import ConverterError
from specmux_schemas.kinds import KindSchema
from specmux_schemas.resources import GroupVersionKind
from specmux_schemas.validation.decoding.objects import Body
from specmux_schemas.validation.decoding.type_meta import TypeMeta
from specmux_schemas.validation.errors import Undecodable
from specmux_schemas.validation.media_types import BodyFormat
from specmux_schemas.validation.messages import bad_request, patch_status, strict_message, warning_texts
from specmux_schemas.validation.patching.patch_types import APPLIES, PatchType, patch_type
from specmux_schemas.validation.patching.patched_object import (
    PatchedObject,
    PatchRefusal,
    applied,
    patched,
    read_applied,
)
from specmux_schemas.validation.report import Check, Directive, Severity, ValidationReport, Violation
from specmux_schemas.validation.stored_objects import key_of

if TYPE_CHECKING:
    from specmux_schemas.validation.validator import Validator

_SEVERITIES: Final = {Directive.STRICT: Severity.ERROR, Directive.WARN: Severity.WARNING}
_CONFLICT: Final = 409


def judged_patch(
    validator: Validator, old: dict[str, Any] | None, body: bytes, media_type: str, directive: Directive
) -> ValidationReport:
    """Raises UnsupportedMediaType, ValueError."""
    form = patch_type(media_type)
    if old is None and form not in APPLIES:
        raise ValueError(f"{form} needs a stored object")
    source = None
    try:
        source = read_applied(body, form) if form in APPLIES else None
        stored = source if source is not None else _as_body(old)
        found, described = validator.described(stored)
        if described is None:
            return validator.validate_body(stored, directive)
        made = _made(validator, old, body, form, source, found, described)
    except Undecodable as error:
        return _refused(error.text, bad_request(error.text), directive, old)
    except PatchRefusal as refusal:
        about = old if old is not None else source.value if source is not None else None
        return _refused(refusal.text, refusal.status, directive, about)
    return _judged(validator, old, made, form, directive)


def _made(
    validator: Validator,
    old: dict[str, Any] | None,
    body: bytes,
    form: PatchType,
    source: Body | None,
    found: TypeMeta,
    described: KindSchema,
) -> PatchedObject:
    if source is None:
        return patched(old or {}, body, form, validator.kind(found), described)
    if old is not None and old.get("apiVersion") != source.value.get("apiVersion"):
        text = (
            "Incorrect version specified in apply patch. "
            f"Specified patch version: {source.value.get('apiVersion')}, expected: {old.get('apiVersion')}"
        )
        raise PatchRefusal(text, bad_request(text))
    try:
        types = validator.apply_types(described)
    except ConverterError as error:
        text = f"the schema for server-side apply cannot be made: {error.reason}"
        return PatchedObject(source.value, unread=text)
    return applied(old, source, found, types, described)


def _judged(
    validator: Validator,
    old: dict[str, Any] | None,
    made: PatchedObject,
    form: PatchType,
    directive: Directive,
) -> ValidationReport:
    is_lenient = made.is_converted or form in APPLIES
    report = validator.validate_body(_as_body(made.value), Directive.IGNORE if is_lenient else directive, old)
    own = () if directive is Directive.IGNORE else made.strict
    strict = (*own, *report.strict_errors)
    violations = [
        *(_strict_violation(text, directive) for text in warning_texts(own)),
        *(replace(each, line=None, column=None) for each in report.violations),
    ]
    if made.unread:
        violations.append(Violation(Severity.NOTE, Check.NOT_CHECKED, (), made.unread))
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
    # The URL says which object is meant, not a uid: another one is an error of its metadata.
    is_uid = report.status is not None and "UID in precondition" in str(report.status.get("message"))
    return None if is_uid else report.status


def _strict_violation(text: str, directive: Directive) -> Violation:
    is_unknown = "unknown field" in text
    check = Check.UNKNOWN_FIELD if is_unknown else Check.DUPLICATE_FIELD
    return Violation(_SEVERITIES[directive], check, (), text)


def _refused(text: str, status: Mapping[str, Any], directive: Directive, value: Any) -> ValidationReport:
    key = key_of(value) if isinstance(value, dict) else None
    violation = Violation(Severity.ERROR, Check.DECODING, (), text)
    if key is None:
        return ValidationReport(None, directive, (violation,), status=status)
    version = str(value.get("apiVersion")).rpartition("/")[2]
    return ValidationReport(
        GroupVersionKind(key.group, version, key.kind),
        directive,
        (violation,),
        name=key.name,
        namespace=key.namespace,
        status=status,
    )


def _as_body(value: Any) -> Body:
    data = orjson.dumps(value, default=float)
    return Body(data, BodyFormat.JSON, orjson.loads(data), is_plain=True)
