"""Strict decoding of one body (KEP-2885): what an apiserver says before it looks at what the object means.

Built-in kinds are decoded as their Go types. Custom resources are decoded as plain JSON, their metadata as
ObjectMeta, and what their schema does not know is pruned (apiextensions, customresource_handler.go).
"""

from __future__ import annotations

from dataclasses import field, replace
from heapq import nsmallest
from typing import Any, Final, TypeAlias

from specmux_converters.document import DEFAULT_LIMITS, Limits
from specmux_converters.errors import ConverterError
from specmux_converters.go.text import SPACES, json_text, quoted
from specmux_converters.go.yaml_reader import DuplicateKey, Parsed
from specmux_converters.group_versions import api_version
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.compiled_kinds import CustomKind, TypedKind
from specmux_tools.validation.decoding import embedded
from specmux_tools.validation.decoding.decoding_state import Decoding, StrictError, duplicate_field
from specmux_tools.validation.decoding.json_reader import MOST_DEPTH, Repeats, pairs_of, read_json, read_plain
from specmux_tools.validation.decoding.pruning import prune
from specmux_tools.validation.decoding.types.typed_nodes import mismatch_text
from specmux_tools.validation.decoding.types.untyped import decode_untyped
from specmux_tools.validation.decoding.yaml_reader import read_yaml, strict_yaml_error
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.media_types import BodyFormat
from specmux_tools.validation.report import MOST_VIOLATIONS, Check, Path, Severity, Violation, path_text
from specmux_tools.validation.schema.structural import Structural
from specmux_tools.validation.schema.type_meta import TypeMeta, json_error, read_type_meta

# ``specmux_converters.codecs.objects.cbor`` decodes the body. This module finds the index of the first
# unknown field, which an apiserver reports instead of its name.

_LIMITS: Final = Limits(max_depth=MOST_DEPTH)
_ARGUMENT_BYTES: Final = {24: 1, 25: 2, 26: 4, 27: 8}
_ARRAY, _MAP, _TAG = 4, 5, 6
_TEXTS: Final = (2, 3)
_GROUP_VERSION_KIND: Final = "unable to determine group/version/kind: "


def read_cbor(data: bytes) -> Any:
    """Raises Undecodable; duplicate keys have an apiserver's text, other errors our own.

    Each byte that is not UTF-8 becomes U+FFFD, as Go's patterns and lengths see it.
    """
    from specmux_converters.codecs.objects import cbor  # imports all codecs, which few bodies need

    try:
        return cbor.without_bytes(cbor.decode_object(data, limits=_LIMITS))
    except ConverterError as error:
        reason = error.reason if error.reason.startswith("cbor: ") else f"cbor: {error.reason}"
        raise Undecodable(_GROUP_VERSION_KIND + reason) from error


def unknown_field_text(data: bytes, path: tuple[str | int, ...]) -> str:
    """The only error of strict decoding: the index in its map of the field at ``path``, as sent."""
    index = _Scan(data).index_of(path)
    return f"cbor: found unknown field at map element index {index}"


class _Scan:
    """Walks over heads of definite and indefinite length (RFC 8949, section 3); decodes only keys."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def index_of(self, path: tuple[str | int, ...]) -> int:
        """0 if there is no such path."""
        index = 0
        for part in path:
            major, count = self._head()
            while major == _TAG:
                major, count = self._head()
            index = 0
            while count is None or index < count:
                if self._ends(count):
                    return 0
                if self._is_there(major, part, index):
                    break
                self._pass()
                index += 1
        return index

    def _is_there(self, major: int, part: str | int, index: int) -> bool:
        return self._text() == part if major == _MAP else index == part

    def _pass(self) -> None:
        """Skip an item, which is known to be complete and not too deep."""
        major, count = self._head()
        while major == _TAG:
            major, count = self._head()
        if major in _TEXTS:
            self._pass_text(count)
        index = 0
        while major in (_ARRAY, _MAP) and (count is None or index < count) and not self._ends(count):
            if major == _MAP:
                self._pass()
            self._pass()
            index += 1

    def _ends(self, count: int | None) -> bool:
        if count is None and self._data[self._at] == 0xFF:
            self._at += 1
            return True
        return False

    def _text(self) -> str:
        major, count = self._head()
        if major not in _TEXTS:
            return f"#{major}:{count}"
        start = self._at
        self._pass_text(count)
        return self._data[start : self._at].decode("utf-8", "replace")

    def _pass_text(self, count: int | None) -> None:
        if count is not None:
            self._at += count
            return
        while not self._ends(None):
            self._pass_text(self._head()[1])

    def _head(self) -> tuple[int, int | None]:
        """Major type and argument; None for an indefinite length."""
        byte = self._data[self._at]
        self._at += 1
        info = byte & 0x1F
        if info < 24:
            return byte >> 5, info
        if info == 31:
            return byte >> 5, None
        size = _ARGUMENT_BYTES.get(info, 0)
        argument = int.from_bytes(self._data[self._at : self._at + size], "big")
        self._at += size
        return byte >> 5, argument


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
