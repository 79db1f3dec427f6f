"""A tree as JSON values: the output of ``-o json`` and of the service.

Empty members are omitted.
"""

from __future__ import annotations

from typing import Any

import orjson

from specmux_converters.document import Document
from specmux_converters.resources import GroupVersionKind
from specmux_tools.explanation.field_details import Details, media_types_json
from specmux_tools.explanation.field_path import format_path
from specmux_tools.explanation.tree import Field
from specmux_tools.unions import Union


def as_json(
    document: Document, kind: GroupVersionKind, names: tuple[str, ...], field: Field
) -> dict[str, Any]:
    """The field at the end of ``names``; a kind has the media types of its operations. ``truncated`` is
    present, and true, if fields were cut off."""
    made: dict[str, Any] = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    made["path"] = format_path(names)
    made.update(_field(field))
    if not field.is_whole:
        made["truncated"] = True
    if not names and (media_types := media_types_json(document, kind)):
        made["mediaTypes"] = media_types
    return made


def _field(field: Field) -> dict[str, Any]:
    made: dict[str, Any] = {"name": field.name} if field.name else {}
    made["type"] = field.type
    if field.is_required:
        made["required"] = True
    if field.description:
        made["description"] = field.description
    made.update(details_json(field.details))
    if field.fields:
        made["fields"] = [_field(each) for each in field.fields]
    if field.has_more:
        made["hasMore"] = True
    return made


def details_json(details: Details) -> dict[str, Any]:
    """Members are named as in OpenAPI and Kubernetes, without the prefix ``x-kubernetes-``."""
    made: dict[str, Any] = {}
    if details.default:
        made["default"] = orjson.loads(details.default)
    if details.enum:
        made["enum"] = list(details.enum)
    if details.limits:
        made["limits"] = dict(details.limits)
    if details.format:
        made["format"] = details.format
    if details.list_type:
        made["list"] = details.list_type
    if details.unions:
        made["unions"] = list(map(_union, details.unions))
    if details.rules:
        made["rules"] = [{"rule": each.rule, "message": each.message} for each in details.rules]
    if details.is_nullable:
        made["nullable"] = True
    if details.preserves_unknown:
        made["preservesUnknownFields"] = True
    if details.deprecated:
        made["deprecated"] = details.deprecated
    return made


def _union(union: Union) -> dict[str, Any]:
    made: dict[str, Any] = {"declaredBy": union.form.value}
    if union.discriminator is None:
        members = [{"field": each.field} for each in union.members]
        return {**made, "required": not union.takes_none, "members": members}
    selected: list[dict[str, Any]] = [
        {"field": each.field, "value": each.value, **({"optional": True} if each.is_optional else {})}
        for each in union.members
    ]
    return {**made, "discriminator": union.discriminator, "members": selected}
