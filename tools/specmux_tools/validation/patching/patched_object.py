"""The object that a PATCH makes of a stored one (apiserver, pkg/endpoints/handlers/patch.go).

The patch is read, checked strictly, and applied. What comes of it is judged as an update elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from specmux_converters.go.text import format_value
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.references import reference_to, schemas_of
from specmux_converters.resources import GroupVersionKind
from specmux_tools.kinds import KindSchema
from specmux_tools.validation.compiled_kinds import CompiledKind, CustomKind
from specmux_tools.validation.decoding.body import Body, read
from specmux_tools.validation.decoding.json_reader import read_json
from specmux_tools.validation.decoding.json_syntax import syntax_error
from specmux_tools.validation.decoding.type_meta import kind_of
from specmux_tools.validation.decoding.typed_nodes import Interface, Node
from specmux_tools.validation.decoding.yaml_reader import strict_yaml_error
from specmux_tools.validation.errors import PatchError, Undecodable
from specmux_tools.validation.messages import (
    UNPROCESSABLE,
    bad_request,
    generic_status,
    patch_status,
    unclassified_status,
)
from specmux_tools.validation.metadata.object_metadata import metadata_of
from specmux_tools.validation.patching import strategic_merge as strategic
from specmux_tools.validation.patching.json_patch import MOST_OPERATIONS, apply_json_patch
from specmux_tools.validation.patching.patch_schemas import PatchSchema
from specmux_tools.validation.patching.server_side_apply import (
    ApplyTypes,
    faults_text,
    merge_applied,
    type_faults,
)
from specmux_tools.validation.patching.strict import (
    strict_errors_of_converted,
    strict_errors_of_json_patch,
    strict_errors_of_merge_patch,
)
from specmux_tools.validation.requests import BodyFormat, PatchType


def apply_merge_patch(document: dict[str, Any], patch: Any) -> Any:
    """The patched document; the given one is modified. Raises PatchError for a scalar as patch."""
    if isinstance(patch, dict):
        _merge(document, patch)
        return document
    if isinstance(patch, list):
        return _without_nulls(patch)
    raise PatchError("Invalid JSON Patch")


def _merge(document: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
            continue
        current = document.get(key)
        if isinstance(current, dict) and isinstance(value, dict):
            _merge(current, value)
        else:
            document[key] = _without_nulls(value)


def _without_nulls(value: Any) -> Any:
    """Without members that are null; items that are null remain."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


_BAD_REQUESTS: Final = (
    strategic.BAD_PRIMITIVE_LIST,
    strategic.BAD_RETAIN_KEYS,
    strategic.BAD_ELEMENT_ORDER,
)


class PatchRefusal(Exception):
    """``text`` is for people, ``status`` what an apiserver answers."""

    def __init__(self, text: str, status: Mapping[str, Any]) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


@dataclass(frozen=True, slots=True)
class PatchedObject:
    value: Any
    strict: tuple[str, ...] = ()
    """Strict errors of the patch itself, and of what was converted."""
    shown: str = ""
    """The bad value in an apiserver's message about the patched object."""
    is_converted: bool = False
    """Its unknown fields are among ``strict``."""
    unread: str = ""
    """The part of the request that could not be taken into account."""


def read_applied(body: bytes, form: PatchType) -> Body:
    """Read the body of an apply. Raises PatchRefusal."""
    format_ = BodyFormat.CBOR if form is PatchType.APPLY_CBOR else BodyFormat.YAML
    try:
        source = read(body, format_)
    except Undecodable as error:
        doing = "decoding" if form is PatchType.APPLY_CBOR else "encoding"
        raise _bad_request(f"error {doing} patch: {error.text}") from error
    if not isinstance(source.value, dict):
        text = f"cannot unmarshal {kind_of(source.value)} into Go value of type map[string]interface {{}}"
        where = "error unmarshaling JSON: while decoding JSON"
        raise _bad_request(f"error decoding patch: {where}: json: {text}")
    return source


def apply_patch(
    old: dict[str, Any],
    body: bytes,
    form: PatchType,
    described: KindSchema,
    kind: CompiledKind,
) -> PatchedObject:
    """The stored object with a patch applied that is no apply. Raises PatchRefusal."""
    node = None if isinstance(kind, CustomKind) else kind.node
    if form is PatchType.STRATEGIC and node is None:
        text = (
            "the body of the request was in an unknown format - accepted media types include: "
            f"{PatchType.JSON}, {PatchType.MERGE}, {PatchType.APPLY}"
        )
        raise PatchRefusal(text, generic_status(415, "UnsupportedMediaType", text))
    if syntax_error(body) is not None:
        raise _bad_request("invalid JSON patch")
    try:
        patch = _plain(body)
    except Undecodable as error:
        where = "" if form is PatchType.STRATEGIC else "error decoding patch: "
        raise _bad_request(where + error.text) from error
    old = orjson.loads(orjson.dumps(old, default=float))
    match form:
        case PatchType.JSON:
            return _by_json_patch(old, body, patch)
        case PatchType.MERGE:
            return _by_merge_patch(old, body, patch)
        case _:
            return _by_strategic_patch(old, body, patch, node or Interface(), described)


def _by_json_patch(old: dict[str, Any], body: bytes, patch: Any) -> PatchedObject:
    try:
        strict = strict_errors_of_json_patch(body)
    except Undecodable as error:
        raise _bad_request(f"error decoding patch: {error.text}") from error
    operations = patch or []
    if len(operations) > MOST_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(operations)}"
        message = f"Request entity too large: {text}"
        raise PatchRefusal(message, generic_status(413, "RequestEntityTooLarge", message))
    try:
        value = apply_json_patch(old, operations)
    except PatchError as error:
        raise PatchRefusal(error.text, generic_status(422, "Invalid", UNPROCESSABLE)) from error
    try:
        shown = _json(value)
    except orjson.JSONEncodeError as error:
        raise _bad_request("the patched object is nested too deeply") from error
    return PatchedObject(value, tuple(strict), shown)


def _by_merge_patch(old: dict[str, Any], body: bytes, patch: Any) -> PatchedObject:
    try:
        strict = strict_errors_of_merge_patch(body)
        value = apply_merge_patch(old, patch)
    except Undecodable as error:
        raise _bad_request(f"error decoding patch: {error.text}") from error
    except PatchError as error:
        raise _bad_request(error.text) from error
    return PatchedObject(value, tuple(strict), _json(value))


def _by_strategic_patch(
    old: dict[str, Any], body: bytes, patch: Any, node: Node, described: KindSchema
) -> PatchedObject:
    try:
        strict = strict_errors_of_merge_patch(body)
    except Undecodable as error:
        raise _bad_request(error.text) from error
    schema = PatchSchema(schemas_of(described.document), {"$ref": reference_to(described.component)})
    try:
        value = strategic.strategic_merge(old, patch or {}, schema)
    except PatchError as error:
        raise PatchRefusal(error.text, _strategic_status(error.text)) from error
    shown = format_value(patch, keeps_integers=True)
    try:
        strict += strict_errors_of_converted(value, node)
    except Undecodable as error:
        raise PatchRefusal(error.text, patch_status(shown, error.text)) from error
    return PatchedObject(value, tuple(strict), shown, is_converted=True)


def _strategic_status(text: str) -> dict[str, Any]:
    if text in _BAD_REQUESTS:
        return bad_request(text)
    if text == strategic.NO_LIST_OF_LISTS:
        return generic_status(422, "Invalid", UNPROCESSABLE)
    return unclassified_status(text)


def apply_configuration(
    old: dict[str, Any] | None, source: Body, types: ApplyTypes, described: KindSchema
) -> PatchedObject:
    """Merge the applied object into the stored one, if there is one. Raises PatchRefusal."""
    value = source.value
    if metadata_of(value).get("managedFields") is not None:
        raise _bad_request("metadata.managedFields must be nil")
    _require_type(types, described, value, "patch")
    unread = ""
    if old is not None:
        _require_type(types, described, old, "live")
        value = merge_applied(types, described.component, old, value)
        if metadata_of(old).get("managedFields"):
            unread = (
                "managedFields of the stored object are not read: conflicts with other managers, and fields "
                "that this one applied before and omits now, are not known"
            )
    duplicates = source.duplicates
    strict = (f"error converting YAML to JSON: {strict_yaml_error(duplicates)}",) if duplicates else ()
    return PatchedObject(value, strict, unread=unread)


def _require_type(types: ApplyTypes, described: KindSchema, value: Any, what: str) -> None:
    """``what``: the "live" object, whose lists may have equal items, or the "patch". Raises PatchRefusal."""
    faults = type_faults(types, described.component, value, allows_duplicates=what == "live")
    if faults:
        name = name_object(value, described.kind)
        text = f"failed to create typed {what} object ({name}): {faults_text(faults)}"
        raise PatchRefusal(text, unclassified_status(text))


def kind_text(found: GroupVersionKind) -> str:
    """GroupVersionKind.String."""
    return f"{found.group}/{found.version}, Kind={found.kind}"


def name_object(value: Any, found: GroupVersionKind) -> str:
    metadata = metadata_of(value)
    return f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}; {kind_text(found)}"


def _bad_request(text: str) -> PatchRefusal:
    return PatchRefusal(text, bad_request(text))


def _plain(body: bytes) -> Any:
    """Raises Undecodable."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return read_json(body)


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=float).decode()
