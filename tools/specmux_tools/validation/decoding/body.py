"""The body that was sent: its bytes and what was read of them, with the places of its fields.

A body that cannot be read is a value as well, with its fault: what is asked of it raises that. The steps
behind it (kinds, decoding, rules, messages) take the one Body along, so none reads it again, and the lines of
violations are found where they are listed.

Lists are opened as kubectl opens them before it sends objects (cli-runtime, FlattenListVisitor): ``List``,
lists of a kind, and lists within lists. An item that says neither its kind nor its version is of the list's
(unstructured/scheme.go, decodeToList)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.errors import ConverterError
from specmux_converters.go.text import SPACES, json_text
from specmux_converters.go.yaml_reader import DuplicateKey, YamlDocument
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind
from specmux_tools.validation.decoding.cbor_reader import read_cbor
from specmux_tools.validation.decoding.json_reader import Repeats, pairs_of, read_json, read_plain
from specmux_tools.validation.decoding.positions import Places, line_and_column
from specmux_tools.validation.decoding.type_meta import json_error, read_type_meta
from specmux_tools.validation.decoding.yaml_reader import read_yaml
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.report import Check, Path, Violation
from specmux_tools.validation.requests import BodyFormat

MOST_SHOWN: Final = 1000
CUT_TO: Final = 200
"""Characters of a body in a message."""
MOST_NESTED: Final = 32
"""Lists within lists that are opened."""
TOO_DEEP: Final = f"lists are nested more than {MOST_NESTED} deep, and not opened"
NOT_FOR_PROTOBUF: Final = "field validation is not defined for Protobuf (KEP-2885)"


Head: TypeAlias = tuple[tuple[str, Any], ...]
"""Fields that an object does not say, and has from the list in which it lies."""


@dataclass(frozen=True, slots=True)
class Body:
    data: bytes
    format: BodyFormat
    value: Any = None
    document: YamlDocument | None = None
    """The document of YAML, with its marks."""
    is_plain: bool = False
    """No key is there twice, and no number is unusual."""
    prefix: Path = ()
    """The object's place in the body, if it is in a list."""
    head: Head = ()
    fault: Undecodable | None = None
    """Why it cannot be read."""

    @classmethod
    def receive(cls, data: bytes, form: BodyFormat, *, plainly: bool = True) -> Body:
        """The body as ``read`` reads it, else its fault."""
        try:
            return read(data, form, plainly=plainly)
        except Undecodable as error:
            return cls(data, form, fault=error)

    def exact(self) -> Body:
        """Read again with what plain reading does not tell."""
        if not self.is_plain:
            return self
        whole = read(self.data, self.format, plainly=False)
        for part in self.prefix:
            whole = whole.enter(part)
        return replace(whole, value=with_head(whole.value, self.head), head=self.head)

    def enter(self, part: str | int, *, head: Head = ()) -> Body:
        """The object at a key or an index, which is there."""
        value = with_head(self.value[part], head)
        return replace(self, value=value, prefix=(*self.prefix, part), head=head)

    @property
    def duplicates(self) -> tuple[DuplicateKey, ...]:
        """The repeated keys of a YAML text, with paths from the object."""
        if self.document is None:
            return ()
        size = len(self.prefix)
        return tuple(
            replace(each, path=each.path[size:])
            for each in self.document.duplicates
            if each.path[:size] == self.prefix
        )

    def type_meta(self) -> GroupVersionKind:
        """Raises Undecodable where the body cannot be read, or does not say its kind and version."""
        if self.fault is not None:
            raise self.fault
        found = read_type_meta(self.value)
        if not found.kind or not found.version:
            name = "apiVersion" if found.kind else "Kind"
            raise Undecodable(f"Object '{name}' is missing in '{self.excerpt()}'")
        return found

    @property
    def kind(self) -> GroupVersionKind | None:
        """None where ``type_meta`` raises."""
        try:
            return self.type_meta()
        except Undecodable:
            return None

    def excerpt(self) -> str:
        """The text in a message. An apiserver shows all of it; here the end of a long one is left out."""
        if self.prefix:
            return _cut(json_text(self.value))
        is_text = self.format is not BodyFormat.CBOR
        return _cut(self.data.decode("utf-8", "replace") if is_text else self.data.hex())

    def locate(self, violations: Sequence[Violation], *, offset: int | None = None) -> tuple[Violation, ...]:
        """The violations with lines and columns, which CBOR has not. ``offset``: byte at which a text stops
        being JSON."""
        if not violations or self.format is BodyFormat.CBOR:
            return tuple(violations)
        if offset is not None:
            before = self.data[:offset].decode("utf-8", "replace")
            line, column = line_and_column(before, len(before))
            return tuple(replace(violation, line=line, column=column) for violation in violations)
        places = Places((*self.prefix, *violation.path) for violation in violations)
        if self.document is not None:
            places.read_yaml(self.document.marks)
        elif self.format is BodyFormat.JSON and self.value is not None:
            repeats = any(violation.check is Check.DUPLICATE_FIELD for violation in violations)
            places.read_json(self.data.decode("utf-8", "replace"), repeats=repeats)
        else:
            return tuple(violations)
        return tuple(self._place(violation, places) for violation in violations)

    def _place(self, violation: Violation, places: Places) -> Violation:
        if violation.line is not None:
            return violation
        path = (*self.prefix, *violation.path)
        found = places.of(path, occurrence=int(violation.check is Check.DUPLICATE_FIELD))
        return violation if found is None else replace(violation, line=found[0], column=found[1])


def with_head(value: Any, head: Head) -> Any:
    if not head:
        return value
    names = {name for name, _ in head}
    pairs = [*head, *(pair for pair in pairs_of(value) if pair[0] not in names)]
    return Repeats(pairs) if type(value) is Repeats else dict(pairs)


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
    from specmux_converters.codecs.object_envelope import open_envelope  # brings all codecs with it

    try:
        envelope = open_envelope(data, limits=DEFAULT_LIMITS)
    except ConverterError as error:
        return f"{NOT_FOR_PROTOBUF}; {error.reason}"
    return f"{NOT_FOR_PROTOBUF}; kind {envelope.kind} of {envelope.api_version}, {len(data)} bytes"


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:CUT_TO]}… ({len(text)} characters)"


def is_list(value: Any) -> bool:
    items = value.get("items") if isinstance(value, dict) else None
    if not isinstance(items, list):
        return False
    kind = value.get("kind")
    return (isinstance(kind, str) and kind.endswith("List")) or (bool(items) and all(map(_has_type, items)))


def flatten(body: Body) -> Iterator[Body]:
    """The body, or a list and its items, in their order. A list that is nested too deeply stays closed."""
    yield body
    if is_list(body.value) and not is_too_deep(body):
        inside = body.enter("items")
        for index, item in enumerate(inside.value):
            yield from flatten(inside.enter(index, head=_missing_head(item, body.value)))


def is_too_deep(body: Body) -> bool:
    """Whether it is a list that ``flatten`` leaves closed."""
    return len(body.prefix) >= 2 * MOST_NESTED and is_list(body.value)


def objects_in(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The object itself, or those of a list."""
    if is_list(value) and depth < MOST_NESTED:
        for item in value["items"]:
            yield from objects_in(with_head(item, _missing_head(item, value)), depth + 1)
    elif isinstance(value, dict):
        yield value


def _has_type(item: Any) -> bool:
    return isinstance(item, dict) and bool(item.get("apiVersion")) and bool(item.get("kind"))


def _missing_head(item: Any, of: dict[str, Any]) -> Head:
    if not isinstance(item, dict) or item.get("apiVersion") or item.get("kind"):
        return ()
    kind = str(of.get("kind")).removesuffix("List")
    return (("apiVersion", of.get("apiVersion")), ("kind", kind)) if kind else ()
