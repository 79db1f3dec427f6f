"""Strict decoding of one body (KEP-2885): what an apiserver says before it looks at what the object means.

Built-in kinds are decoded as their Go types. Custom resources are decoded as plain JSON, their metadata as
ObjectMeta, and what their schema does not know is pruned (apiextensions, customresource_handler.go).
"""

from __future__ import annotations

from dataclasses import field
from heapq import nsmallest
from typing import Any

from specmux_converters.go.text import quote_text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind
from specmux_tools.validation.compiled_kinds import CustomKind, TypedKind
from specmux_tools.validation.decoding.body import Body
from specmux_tools.validation.decoding.cbor_reader import unknown_field_text
from specmux_tools.validation.decoding.decoding_state import (
    Decoding,
    StrictError,
    strict_error,
    unknown_field,
)
from specmux_tools.validation.decoding.embedded import unknown_in_embedded, unknown_in_metadata
from specmux_tools.validation.decoding.structural_values import prune
from specmux_tools.validation.decoding.typed_nodes import decode_untyped, mismatch_text
from specmux_tools.validation.decoding.yaml_reader import strict_yaml_error
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.report import MOST_VIOLATIONS, Check, Severity, Violation, path_text
from specmux_tools.validation.requests import BodyFormat
from specmux_tools.validation.schema.structural import Structural


@dataclass(slots=True)
class DecodedObject:
    """``value`` is the object without its unknown fields, where it is a custom one."""

    value: Any
    strict: list[StrictError] = field(default_factory=list)
    strict_errors: list[str] = field(default_factory=list)
    """Texts as an apiserver groups them."""
    schema: list[Violation] = field(default_factory=list)
    faults: list[Violation] = field(default_factory=list)
    """Values of a wrong type in a built-in object, first what an apiserver fails with."""
    left_out: int = 0
    """Errors that are not listed."""
    strict_left_out: int = 0
    """The errors of ``strict`` that are not listed."""
    stored: Any = None
    """The object as it would be stored, once it was checked."""


def decode_typed(body: Body, kind: TypedKind) -> DecodedObject:
    """Decode into a Go type. An apiserver fails with the first of ``faults``; the rest is found, too."""
    state = Decoding()
    kind.node.decode(body.value, state)
    if body.is_plain and (state.mismatch is not None or state.strict):
        return decode_typed(body.exact(), kind)
    # Creating ignores a status; manifests that tools write have an empty one.
    schema = [each for each in state.schema if each.path[:1] != ("status",)]
    decoded = DecodedObject(body.value, state.strict, schema=schema, left_out=state.left_out)
    if state.mismatch is not None:
        others = [each for each in state.mismatches if each != state.mismatch]
        decoded.faults = [
            Violation(Severity.ERROR, Check.DECODING, each.path, mismatch_text(kind.node, each))
            for each in (state.mismatch, *others)
        ]
    decoded = _finish(body, decoded)
    if body.format is BodyFormat.CBOR and decoded.strict:
        decoded.strict_errors = [unknown_field_text(body.data, (*body.prefix, *decoded.strict[0].path))]
    return decoded


def decode_custom(body: Body, kind: CustomKind, schema: Structural | None) -> DecodedObject:
    """``schema`` is that of the body's version, None where the body is of another group or kind.

    Raises Undecodable.
    """
    state = Decoding()
    if not body.is_plain:
        decode_untyped(body.value, state)
        if state.mismatch is not None:
            text = f"json: cannot unmarshal {state.mismatch.value} into Go value of type float64"
            raise Undecodable(text, path=state.mismatch.path)
    value = body.value
    errors = [*state.strict, *(unknown_in_metadata(value["metadata"]) if "metadata" in value else ())]
    left_out = 0
    if schema is not None:
        if not kind.preserves_unknown:
            value, pruned = prune(value, schema)
            if body.is_plain and (errors or pruned):
                return decode_custom(body.exact(), kind, schema)
            texts = nsmallest(MOST_VIOLATIONS, ((f'{path_text(path)}"', path) for path in pruned))
            errors += [unknown_field(path, text[:-1]) for text, path in texts]
            left_out = len(pruned) - len(texts)
        errors += unknown_in_embedded(value, schema)
    if body.is_plain and errors:
        return decode_custom(body.exact(), kind, schema)
    return _finish(body, DecodedObject(value, errors, strict_left_out=left_out))


def _finish(body: Body, decoded: DecodedObject) -> DecodedObject:
    """With the texts of the errors as an apiserver groups them, and YAML's duplicates."""
    texts = [error.text for error in decoded.strict]
    duplicates = body.duplicates
    if duplicates:
        listed = duplicates[:MOST_VIOLATIONS]
        decoded.strict_left_out += len(duplicates) - len(listed)
        # Told as those of JSON are, which name the field; go-yaml's words are in ``strict_errors``.
        repeated = (strict_error(Check.DUPLICATE_FIELD, each.path) for each in listed)
        decoded.strict = [*repeated, *decoded.strict]
        texts = [strict_yaml_error(listed), *texts]
    decoded.strict_errors = texts
    return decoded


def name_unregistered(kind: GroupVersionKind) -> str:
    """The message about a kind that no schema describes; an apiserver adds the place of its scheme."""
    return f"no kind {quote_text(kind.kind)} is registered for version {quote_text(kind.api_version)}"
