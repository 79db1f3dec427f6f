"""The example in a kind's JSON Schema: its skeleton, if the schema accepts it unchanged. Pure.

A placeholder fails a pattern or a minimum length; such a kind has no example, nor has one with an odd
document: an example is optional, and must never cost a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, Final

from specmux_converters.document import Document
from specmux_converters.go.regexp_match import Pattern
from specmux_converters.json_schema import Kind, Schema
from specmux_converters.resources import GroupVersionKind
from specmux_converters.yaml import parse_yaml_stream
from specmux_tools.explanation.skeleton import skeleton
from specmux_tools.validation.schema.formats import find_format

MAX_BYTES: Final = 16 * 1024
"""Bytes of the largest skeleton used as an example, since schemas are sent often."""

_FORMATS: Final = ("date-time", "hostname")
"""Formats that jsonschema checks only with further packages; they are checked here."""


def example_of(document: Document, kind: Kind, schema: Schema) -> dict[str, Any] | None:
    """Passed to ``DocumentSchemas``."""
    subject = GroupVersionKind(kind.group, kind.version, kind.kind)
    component = document["components"]["schemas"][kind.component]
    try:
        text = skeleton(document, subject, component).encode()
        if len(text) > MAX_BYTES:
            return None
        (value,) = parse_yaml_stream(text)
        return value if _validator()(schema).is_valid(value) else None
    except Exception:  # noqa: BLE001  # jsonschema raises whatever odd keywords make its code raise
        return None


@cache
def _validator() -> Callable[[Schema], Any]:
    import jsonschema  # only the process that makes schemas needs it

    def pattern(_: Any, text: str, value: Any, __: Schema) -> Iterator[jsonschema.ValidationError]:
        """In linear time: pattern and default are as untrusted as the document."""
        if isinstance(value, str) and not Pattern(text).matches(value):
            yield jsonschema.ValidationError("does not match")

    checker = jsonschema.FormatChecker()
    for name in _FORMATS:
        checker.checks(name)(partial(_has_format, name))
    checking = jsonschema.validators.extend(jsonschema.Draft7Validator, {"pattern": pattern})
    return partial(checking, format_checker=checker)


def _has_format(name: str, value: object) -> bool:
    found = find_format(name)
    return found is None or not isinstance(value, str) or found.accepts(value)
