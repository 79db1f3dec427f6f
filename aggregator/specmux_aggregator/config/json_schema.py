"""The JSON Schema (2020-12) of the configuration file, generated from the settings for editors. Pure.

It is as strict as the parser about names, choices and bounds; relations between values are checked only by
the parser (``specmux check-config``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from specmux_aggregator.config.backend import SOURCES, file_fields
from specmux_aggregator.config.setting_fields import SettingField, plain, setting_fields
from specmux_aggregator.model.backend import BackendKind
from specmux_converters.releases import RELEASES

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_BYTES: Final = {
    "type": "string",
    "pattern": "^[0-9]+(\\.[0-9]+)? ?(B|kB|MB|GB|KiB|MiB|GiB|k|M|G|Ki|Mi|Gi)?$",
}
_TYPES: Final[dict[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    Path: "string",
}


def config_schema() -> dict[str, Any]:
    """The schema of the whole file. An empty group equals an absent one."""
    groups: dict[str, dict[str, Any]] = {}
    for setting in setting_fields():
        groups.setdefault(setting.group, {})[setting.name] = _setting(setting)
    return {
        "$schema": DIALECT,
        "title": "specmux.yaml",
        "description": "The configuration of specmux serve.",
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {
            **{name: _group(properties) for name, properties in groups.items()},
            "backends": {
                "description": "The apiservers and directories that are served together.",
                "type": ["array", "null"],
                "items": _backend(),
            },
        },
    }


def _setting(setting: SettingField) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": f"{setting.doc[0].upper()}{setting.doc[1:]}."}
    if setting.is_list:
        return {**schema, "type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
    if setting.choices:
        schema["enum"] = list(setting.choices)
    else:
        bounds = {"minimum": setting.at_least, "maximum": setting.at_most}
        typed = {"type": _TYPES[setting.type], **{name: at for name, at in bounds.items() if at is not None}}
        schema |= {"anyOf": [typed, _BYTES]} if setting.is_bytes else typed
    if setting.default is not None:
        is_plain = isinstance(setting.default, bool | int | float | str)
        schema["default"] = setting.default if is_plain else plain(setting.default)
    return schema


def _group(properties: dict[str, Any]) -> dict[str, Any]:
    """An object; or the name of one of its switches, short for that switch set to true."""
    switches = [name for name, schema in properties.items() if schema.get("type") == "boolean"]
    whole = {"type": ["object", "null"], "additionalProperties": False, "properties": properties}
    return {"anyOf": [whole, {"enum": switches}]} if switches else whole


def _backend() -> dict[str, Any]:
    own, groups = file_fields()
    properties: dict[str, Any] = {name: {"type": _TYPES[kind]} for name, kind in own.items()}
    properties["kubernetes"] = {"enum": list(RELEASES)}
    properties["kind"] = {"enum": [str(kind) for kind in BackendKind]}
    properties["urls"] = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    properties["group_versions"] = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    for name, fields in groups.items():
        inner = {key: {"type": _TYPES[kind]} for key, kind in fields.items()}
        properties[name] = {"type": "object", "additionalProperties": False, "properties": inner}
    return {
        "type": "object",
        "required": ["name"],
        "additionalProperties": False,
        "properties": properties,
        "oneOf": [{"required": [source]} for source in SOURCES],
    }
