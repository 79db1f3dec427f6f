"""Strict decoding of one body (KEP-2885): what an apiserver says before it looks at what the object means.

Built-in kinds are decoded as their Go types. Custom resources are decoded as plain JSON, their metadata as
ObjectMeta, and what their schema does not know is pruned (apiextensions, customresource_handler.go).
"""

from __future__ import annotations

from dataclasses import field, replace
from heapq import nsmallest
from typing import Any, Final, TypeAlias

from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.errors import ConverterError
from specmux_converters.go.text import SPACES, json_text, quoted
from specmux_converters.go.yaml_reader import DuplicateKey, Parsed
from specmux_converters.group_versions import api_version
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.compiled_kinds import CustomKind, TypedKind
from specmux_tools.validation.decoding import embedded
from specmux_tools.validation.decoding.cbor_reader import read_cbor, unknown_field_text
from specmux_tools.validation.decoding.decoding_state import Decoding, StrictError, duplicate_field
from specmux_tools.validation.decoding.json_reader import Repeats, pairs_of, read_json, read_plain
from specmux_tools.validation.decoding.pruning import prune
from specmux_tools.validation.decoding.types.typed_nodes import mismatch_text
from specmux_tools.validation.decoding.types.untyped import decode_untyped
from specmux_tools.validation.decoding.yaml_reader import read_yaml, strict_yaml_error
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.media_types import BodyFormat
from specmux_tools.validation.report import MOST_VIOLATIONS, Check, Path, Severity, Violation, path_text
from specmux_tools.validation.schema.structural import Structural
from specmux_tools.validation.schema.type_meta import TypeMeta, json_error, read_type_meta

MOST_SHOWN: Final = 1000
CUT_TO: Final = 200
"""Characters of a body in a message."""
NOT_FOR_PROTOBUF: Final = "field validation is not defined for Protobuf (KEP-2885)"


Head: TypeAlias = tuple[tuple[str, Any], ...]
"""Fields that an object does not say, and has from the list in which it lies."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body that was read. ``document`` is that of YAML."""

    data: bytes
    format: BodyFormat
    value: Any
    document: Parsed | None = None
    is_plain: bool = False
    """No key is there twice, and no number is unusual."""
    prefix: Path = ()
    """Where the object lies in the body, of those in a list."""
    head: Head = ()

    def exact(self) -> Body:
        """Read again with what plain reading does not tell."""
        if not self.is_plain:
            return self
        whole = read(self.data, self.format, plainly=False)
        for part in self.prefix:
            whole = whole.inside(part)
        return replace(whole, value=with_head(whole.value, self.head), head=self.head)

    def inside(self, part: str | int, *, head: Head = ()) -> Body:
        """The object at a key or an index, which is there."""
        value = with_head(self.value[part], head)
        return replace(self, value=value, prefix=(*self.prefix, part), head=head)

    @property
    def duplicates(self) -> tuple[DuplicateKey, ...]:
        """Of a YAML text, with paths from the object."""
        if self.document is None:
            return ()
        size = len(self.prefix)
        return tuple(
            replace(each, path=each.path[size:])
            for each in self.document.duplicates
            if each.path[:size] == self.prefix
        )


def with_head(value: Any, head: Head) -> Any:
    if not head:
        return value
    names = {name for name, _ in head}
    pairs = [*head, *(pair for pair in pairs_of(value) if pair[0] not in names)]
    return Repeats(pairs) if type(value) is Repeats else dict(pairs)


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
    """Of ``strict``."""
    stored: Any = None
    """The object as it would be stored, once it was checked."""


def read(data: bytes, form: BodyFormat, *, plainly: bool = True) -> Body:
    """Raises Undecodable. ``plainly``: the quick way, where the text allows it."""
    match form:
        case BodyFormat.YAML:
            document = read_yaml(data)
            return Body(data, form, document.value, document)
        case BodyFormat.CBOR:
            return Body(data, form, read_cbor(data))
        case BodyFormat.PROTOBUF:
            raise Undecodable(protobuf_text(data))
        case BodyFormat.JSON:
            value = read_plain(data) if plainly else None
            if value is not None:
                return Body(data, form, value, is_plain=True)
            try:
                return Body(data, form, read_json(data))
            except Undecodable as error:
                if is_broken_separator(data):
                    text = f"invalid Yaml document separator: {_cut(_behind_separator(data))}"
                    raise Undecodable(text, line=1) from error
                raise Undecodable(json_error(error.text), offset=error.offset) from error


def is_broken_separator(data: bytes) -> bool:
    """Whether a text begins with a separator of YAML and more than a comment behind it, which kubectl refuses
    (apimachinery, YAMLReader)."""
    return data.startswith(b"---") and _behind_separator(data)[:1] not in ("", "#")


def _behind_separator(data: bytes) -> str:
    return data.partition(b"\n")[0][3:].decode("utf-8", "replace").strip(SPACES)


def protobuf_text(data: bytes) -> str:
    """Why an object in Protobuf is not looked into, and what it is."""
    from specmux_converters.codecs.objects.envelope import open_envelope  # brings all codecs with it

    try:
        envelope = open_envelope(data, limits=DEFAULT_LIMITS)
    except ConverterError as error:
        return f"{NOT_FOR_PROTOBUF}; {error.reason}"
    return f"{NOT_FOR_PROTOBUF}; kind {envelope.kind} of {envelope.api_version}, {len(data)} bytes"


def type_meta_of(body: Body) -> TypeMeta:
    """Raises Undecodable where the body does not say its kind and version."""
    found = read_type_meta(body.value)
    if not found.kind or not found.version:
        name = "apiVersion" if found.kind else "Kind"
        raise Undecodable(f"Object '{name}' is missing in '{shown_body(body)}'")
    return found


def shown_body(body: Body) -> str:
    """An apiserver shows all of it; here the end of a long one is left out."""
    if body.prefix:
        return _cut(json_text(body.value))
    return _cut(
        body.data.decode("utf-8", "replace") if body.format is not BodyFormat.CBOR else body.data.hex()
    )


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:CUT_TO]}… ({len(text)} characters)"


def decode_typed(body: Body, kind: TypedKind) -> DecodedObject:
    """Of an object that cannot be decoded, ``fatal`` says what an apiserver says; the rest is found, too."""
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
    decoded = _finished(body, decoded)
    if body.format is BodyFormat.CBOR and decoded.strict:
        decoded.strict_errors = [unknown_field_text(body.data, (*body.prefix, *decoded.strict[0].path))]
    return decoded


def decode_custom(body: Body, found: TypeMeta, kind: CustomKind, schema: Structural | None) -> DecodedObject:
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
    unknown = embedded.unknown_in_metadata(value["metadata"]) if "metadata" in value else []
    errors = [*state.strict, *(_unknown(each.path, each.place) for each in unknown)]
    left_out = 0
    if schema is not None:
        if not kind.preserves_unknown:
            value, pruned = prune(value, schema)
            if body.is_plain and (errors or pruned):
                return decode_custom(body.exact(), found, kind, schema)
            texts = nsmallest(MOST_VIOLATIONS, ((f'{path_text(path)}"', path) for path in pruned))
            errors += [_unknown(path, text[:-1]) for text, path in texts]
            left_out = len(pruned) - len(texts)
        errors += (_unknown(each.path, each.place) for each in embedded.unknown_in_embedded(value, schema))
    if body.is_plain and errors:
        return decode_custom(body.exact(), found, kind, schema)
    return _finished(body, DecodedObject(value, errors, strict_left_out=left_out))


def _unknown(path: Path, place: str) -> StrictError:
    """Here nothing is escaped (customresource_handler.go)."""
    return StrictError(Check.UNKNOWN_FIELD, path, f'unknown field "{place}"')


def _finished(body: Body, decoded: DecodedObject) -> DecodedObject:
    """With the texts of the errors as an apiserver groups them, and YAML's duplicates."""
    texts = [error.text for error in decoded.strict]
    duplicates = body.duplicates
    if duplicates:
        listed = duplicates[:MOST_VIOLATIONS]
        decoded.strict_left_out += len(duplicates) - len(listed)
        # Told as those of JSON are, which name the field; go-yaml's words are in ``strict_errors``.
        repeated = [duplicate_field(each.path) for each in listed]
        decoded.strict = [*repeated, *decoded.strict]
        texts = [strict_yaml_error(listed), *texts]
    decoded.strict_errors = texts
    return decoded


def unregistered(found: TypeMeta) -> str:
    """Of a kind that no schema describes; an apiserver adds the place of its scheme."""
    version = api_version(found.group, found.version)
    return f"no kind {quoted(found.kind)} is registered for version {quoted(version)}"
