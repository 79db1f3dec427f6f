"""Messages for the wire: Warning fields, and the Status of a refused request, as an apiserver writes them.

Sources: apiserver pkg/endpoints/{filters/warning.go, handlers/rest.go}, apimachinery pkg/util/net/http.go,
pkg/api/errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from specmux_converters.go.text import quote_text
from specmux_converters.lazy.patterns import pattern
from specmux_converters.resources import NO_KIND, GroupVersionKind
from specmux_tools.validation.errors import InvalidDirective
from specmux_tools.validation.field_errors import not_supported
from specmux_tools.validation.report import Check, Directive, Severity, ValidationReport

MOST_RUNES: Final = 4096
"""Characters of all warnings in one answer; beyond them each is truncated."""
CUT_RUNES: Final = 256

BLOCKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
"""A note in a report, an error in a Status (apiextensions, pkg/registry/customresource/strategy.go)."""

_CONTROL: Final = pattern("[\\x00-\\x1f\\x7f-\\x9f]")
_YAML_PREFIXES: Final = (
    "error converting YAML to JSON: yaml: unmarshal errors:\n",
    "yaml: unmarshal errors:\n",
)
_DIRECTIVES: Final = ("", "Ignore", "Strict", "Warn")
_OPTIONS_GROUP: Final = "meta.k8s.io"


def parse_directive(text: str, options_kind: str = "CreateOptions") -> Directive:
    """Parse the query parameter ``fieldValidation``; empty means Warn. Raises InvalidDirective."""
    if text == "":
        return Directive.WARN
    try:
        return Directive(text)
    except ValueError as error:
        status = _invalid(
            GroupVersionKind(_OPTIONS_GROUP, "", options_kind),
            "",
            [not_supported(("fieldValidation",), text, _DIRECTIVES)],
        )
        raise InvalidDirective(status["message"], status=status) from error


def strict_message(strict_errors: Iterable[str]) -> str:
    """All of them combined, as in an error."""
    return "strict decoding error: " + ", ".join(strict_errors)


def warning_texts(strict_errors: Iterable[str]) -> list[str]:
    """One per violation: YAML's single error is split by lines (handlers/rest.go)."""
    texts: list[str] = []
    for error in strict_errors:
        for prefix in _YAML_PREFIXES:
            if error.startswith(prefix):
                texts += (line.strip() for line in error.removeprefix(prefix).split("\n") if line.strip())
                break
        else:
            texts.append(error)
    return texts


def report_warnings(report: ValidationReport) -> list[str]:
    """The texts of all warnings of an apiserver: those of decoding first."""
    decoding = warning_texts(report.strict_errors) if report.directive is Directive.WARN else []
    is_decoding = (Check.UNKNOWN_FIELD, Check.DUPLICATE_FIELD)
    others = [
        each.message
        for each in report.violations
        if each.severity is Severity.WARNING and each.check not in is_decoding
    ]
    return [*decoding, *others]


def warning_fields(texts: Iterable[str]) -> list[str]:
    """Values of the Warning fields of an answer: each text once, truncated if they are too long together."""
    texts = [text for text in dict.fromkeys(texts) if text]
    fields, written = [], 0
    for index, text in enumerate(texts):
        field = _field(text)
        if field is None:
            continue
        if written + len(text) > MOST_RUNES:
            return _cut_fields(texts[: index + 1], texts[index + 1 :])
        fields.append(field)
        written += len(text)
    return fields


def _cut_fields(replayed: list[str], following: list[str]) -> list[str]:
    fields, written = [], 0
    for index, text in enumerate((*replayed, *following)):
        if index >= len(replayed) and written >= MOST_RUNES:
            break
        field = _field(text[:CUT_RUNES])
        if field is not None:
            fields.append(field)
            written += len(text[:CUT_RUNES])
    return fields


def _field(text: str) -> str | None:
    """None for a text with control characters, which an apiserver omits."""
    if _CONTROL.search(text):
        return None
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'


def status_of(report: ValidationReport) -> dict[str, Any] | None:
    """The Status with which an apiserver refuses to create the object; None if it accepts it.

    Decoding errors come first, with 400; other errors have 422.
    """
    if report.status is not None:
        return dict(report.status)
    kind = report.kind or NO_KIND
    reason = report.fatal
    if reason is None and report.strict_errors and report.directive is Directive.STRICT:
        reason = strict_message(report.strict_errors)
    if reason is not None:
        shown = (
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            if kind.kind
            else ""
        )
        return generic_status(400, "BadRequest", shown + reason)
    errors = [each for each in report.violations if each.severity is Severity.ERROR]
    if not errors:
        return None
    messages = [each.message for each in errors]
    if any(each.message == BLOCKED for each in report.violations):
        messages.append(f"<nil>: Invalid value: null: {BLOCKED}")
    return _invalid(kind, report.name, messages)


def bad_request(message: str) -> dict[str, Any]:
    return generic_status(400, "BadRequest", message)


UNPROCESSABLE: Final = "the server rejected our request due to an error in our request"
"""An apiserver's entire message about a patch that cannot be applied (NewGenericServerResponse)."""


def unclassified_status(message: str) -> dict[str, Any]:
    """The Status of an error that has none of its own."""
    status = generic_status(500, "", message)
    del status["reason"]
    return status


def patch_status(shown: str, detail: str) -> dict[str, Any]:
    """The Status of a patch whose result cannot be decoded. ``shown``: the result, or the patch."""
    return _invalid(NO_KIND, "", [f"patch: Invalid value: {quote_text(shown)}: {detail}"])


def conflict_status(resource: str, group: str, name: str, message: str) -> dict[str, Any]:
    """``resource``: the plural name."""
    shown = f"{resource}.{group}" if group else resource
    status = generic_status(
        409, "Conflict", f"Operation cannot be fulfilled on {shown} {quote_text(name)}: {message}"
    )
    status["details"] = {"name": name, **({"group": group} if group else {}), "kind": resource}
    return status


def _invalid(kind: GroupVersionKind, name: str, messages: list[str]) -> dict[str, Any]:
    shown = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    listed = messages[0] if len(messages) == 1 else f"[{', '.join(dict.fromkeys(messages))}]"
    causes = []
    for message in messages:
        field, _, text = message.partition(": ")
        causes.append({"reason": _reason(field, text), "message": text, "field": field})
    status = generic_status(422, "Invalid", f"{shown} {quote_text(name)} is invalid: {listed}")
    named = {"name": name, "group": kind.group, "kind": kind.kind}
    status["details"] = {**{key: value for key, value in named.items() if value}, "causes": causes}
    return status


_REASONS: Final = {
    "Required value": "FieldValueRequired",
    "Duplicate value": "FieldValueDuplicate",
    "Unsupported value": "FieldValueNotSupported",
    "Forbidden": "FieldValueForbidden",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
    "Too short": "FieldValueTooShort",
    "Too few": "FieldValueTooFew",
    "Not found": "FieldValueNotFound",
    "Internal error": "InternalError",
}


def _reason(field: str, text: str) -> str:
    if f"{field} in body must be of type " in text:
        return "FieldValueTypeInvalid"
    return _REASONS.get(text.partition(":")[0], "FieldValueInvalid")


def generic_status(code: int, reason: str, message: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
