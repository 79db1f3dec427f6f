"""``allOf``, ``anyOf``, ``oneOf`` and ``not`` of custom resources, which apply after defaulting.

A field with a default is always present. So a branch need not require it, and a branch that refuses the
default must require it: otherwise an absent field, which stands for the default, would pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specmux_converters.json_schema.forms import Mode, Schema
from specmux_converters.json_schema.keywords import combinators_of, plain_keywords
from specmux_converters.json_schema.refusal import refuses
from specmux_converters.json_schema.scalars import STRFMT_BASE64, format_of
from specmux_converters.json_values import within


def branches(schema: Mapping[str, Any], mode: Mode, beside: Mapping[str, Any] | None = None) -> Schema:
    """The combinators of ``schema``; ``beside`` has the fields that they refer to."""
    beside = schema if beside is None else beside
    written: Schema = {}
    for key in combinators_of(mode):
        value = schema.get(key)
        if isinstance(value, list) and value:
            written[key] = [_branch(each, mode, beside) for each in value]
        elif key == "not" and isinstance(value, dict):
            written[key] = _branch(value, mode, beside)
    return written


def required_beside(schema: Mapping[str, Any], beside: Mapping[str, Any]) -> list[str]:
    """The fields required by ``schema``, except those with a default."""
    required = schema.get("required")
    fields = within(beside, "properties")
    return [name for name in required or () if isinstance(name, str) and not _default(fields, name)]


def _branch(schema: Any, mode: Mode, beside: Mapping[str, Any]) -> Schema:
    if not isinstance(schema, dict):
        return {}
    written = plain_keywords(schema)
    if isinstance(schema.get("type"), str):
        written["type"] = schema["type"]
    written |= format_of(schema, base64=STRFMT_BASE64)
    if isinstance(schema.get("enum"), list):
        written["enum"] = schema["enum"]
    properties = within(schema, "properties")
    fields = within(beside, "properties")
    if properties:
        written["properties"] = {
            name: _branch(value, mode, within(fields, name)) for name, value in properties.items()
        }
    needed = required_beside(schema, beside) + [
        name for name, value in properties.items() if _refuses_default(value, fields, name)
    ]
    if needed and mode.requires:
        written["required"] = list(dict.fromkeys(needed))
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            written[key] = _branch(schema[key], mode, within(beside, key))
    if isinstance(schema.get("additionalProperties"), bool):
        written["additionalProperties"] = schema["additionalProperties"]
    return written | branches(schema, mode, beside)


def _refuses_default(schema: Any, fields: Mapping[str, Any], name: str) -> bool:
    default = _default(fields, name)
    return bool(default) and refuses(schema, default[0])


def _default(fields: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """The default of a field as a tuple, empty without one."""
    default = within(fields, name).get("default")
    return () if default is None else (default,)
