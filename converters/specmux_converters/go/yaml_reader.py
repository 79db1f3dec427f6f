"""Parse YAML into JSON values by the rules of a dialect.

Works on libyaml's events, without recursion and without PyYAML's constructors, which reject ``=`` and turn
``1:30`` into ninety and dates into objects. Aliases count with their expanded size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field, replace
from enum import Enum
from itertools import islice
from typing import Any, Final, NoReturn, TypeAlias

import yaml

from specmux_converters.document import DEFAULT_LIMITS, Limits, rounding_loss
from specmux_converters.errors import ConverterError, InvalidDocument, LimitExceeded, cut
from specmux_converters.go.text import go_syntax
from specmux_converters.go.yaml_dialects import Mark, Merging, YamlDialect, kubernetes_key, refused_key
from specmux_converters.json_text import is_rounded
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern
from specmux_converters.losses import Loss, pointer_to

MAX_TAG_DIRECTIVES: Final = 1000
"""libyaml compares each with all previous ones: 40,000 would take three seconds."""
NODE_BYTES: Final = 128
"""Bytes counted for a value beside its text: 256 MiB allow two million values, which take eight seconds."""
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_UNKNOWN_ANCHOR: Final = "yaml: unknown anchor"
_WANT_MAP: Final = "yaml: map merge requires map or sequence of maps as the value"

Path: TypeAlias = tuple[str | int, ...]


class Duplicates(Enum):
    """The treatment of a duplicate key."""

    REFUSED = "an error"
    REPORTED = "the last counts, and all are listed"


@dataclass(frozen=True, slots=True)
class DuplicateKey:
    """A duplicate key. ``line``: of its value, from 1."""

    line: int
    path: Path
    key: str
    """In Go's syntax."""

    @property
    def text(self) -> str:
        return f"line {self.line}: key {self.key} already set in map"


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document of a stream. Aliased values are the same object at every place: treat them as
    read-only."""

    value: Any
    duplicates: tuple[DuplicateKey, ...] = ()
    marks: list[Any] = field(default_factory=list)
    """libyaml's events of the document, for places; empty unless requested."""
    losses: tuple[Loss, ...] = ()
    """Integers that became doubles, and different keys with the same name in JSON."""


def read(
    data: bytes | str,
    *,
    dialect: YamlDialect,
    duplicates: Duplicates = Duplicates.REFUSED,
    limits: Limits = DEFAULT_LIMITS,
    with_marks: bool = False,
) -> YamlDocument:
    """The first document; null if there is none. Raises as ``read_all``."""
    documents = read_all(data, dialect=dialect, duplicates=duplicates, limits=limits, with_marks=with_marks)
    return next(documents, YamlDocument(None))


def read_all(
    data: bytes | str,
    *,
    dialect: YamlDialect,
    duplicates: Duplicates = Duplicates.REFUSED,
    limits: Limits = DEFAULT_LIMITS,
    with_marks: bool = False,
) -> Iterator[YamlDocument]:
    """Each document in turn. Raises InvalidDocument with ``line``, chained to libyaml's error for invalid
    YAML; LimitExceeded beyond ``limits``."""
    text = data.encode() if isinstance(data, str) else data
    if text.replace(b"\0", b"").count(b"%TAG") > MAX_TAG_DIRECTIVES:  # also in UTF-16
        raise LimitExceeded(f"more than {MAX_TAG_DIRECTIVES} %TAG directives")
    composer = _Composer(limits, dialect, duplicates)
    loader = None
    try:
        stand_ins = _StandIns(text) if _is_read_otherwise(text, dialect) else None
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(
            data if stand_ins is None else stand_ins.put_into(text, dialect)
        )
        # yaml.parse would additionally check for each event before getting it
        events = iter(loader.get_event, None)
        if stand_ins is not None:
            events = map(stand_ins.decode_event, events)
        yield from composer.documents(events, with_marks=with_marks)
    except (yaml.YAMLError, UnicodeError) as error:
        if getattr(error, "problem", None) == _TOO_DEEP:
            raise LimitExceeded(f"nested more than {min(limits.max_depth, 1000)} deep") from None
        raise _refusal(error) from error
    finally:
        if loader is not None:
            loader.dispose()


_LATER_MARK: Final = pattern(b"(?<=[\n\r])\xef\xbb\xbf")
"""A byte order mark at the start of a line: libyaml skips it, go-yaml treats it as text (is_bom)."""


_ESCAPE: Final = pattern(rb"(?<!\\)((?:\\\\)*)\\(['/])")
r"""``\'`` and ``\/``: of these escapes go-yaml v2 knows the first alone, libyaml the second alone."""


def _is_read_otherwise(text: bytes, dialect: YamlDialect) -> bool:
    """Whether libyaml may read the text otherwise than go-yaml does."""
    has_escapes = dialect.has_go_escapes and (b"\\'" in text or b"\\/" in text)
    return has_escapes or _LATER_MARK.search(text) is not None


class _StandIns:
    """Characters that do not occur in a text, put where libyaml has to read what it would not. Each is put
    for one character, so places stay what they are."""

    def __init__(self, text: bytes) -> None:
        unused = (each for each in map(chr, range(0xE000, 0xF900)) if each.encode() not in text)
        self._mark, self._backslash, self._slash = islice(unused, 3)
        self._quoted = {ord(self._mark): "\ufeff", ord(self._backslash): None}
        self._unquoted = {ord(self._mark): "\ufeff", ord(self._backslash): "\\", ord(self._slash): "/"}

    def put_into(self, text: bytes, dialect: YamlDialect) -> bytes:
        text = _LATER_MARK.sub(self._mark.encode(), text)
        return _ESCAPE.sub(self._escape, text) if dialect.has_go_escapes else text

    def _escape(self, found: re.Match[bytes]) -> bytes:
        r"""In double quotes, ``\'`` is no escape then, and ``\/`` an unknown one."""
        if found[2] == b"'":
            return found[1] + self._backslash.encode() + found[2]
        return found[1] + b"\\" + self._slash.encode()

    def decode_event(self, event: Any) -> Any:
        if event.__class__ is yaml.ScalarEvent:
            event.value = event.value.translate(self._quoted if event.style == '"' else self._unquoted)
        return event


_TOO_DEEP: Final = "exceeded maximum nesting depth"
"""libyaml's own limit of 1,000, from 0.2.6 on: it reads ahead of what the composer has counted."""


def _refusal(error: yaml.YAMLError | UnicodeError) -> InvalidDocument:
    mark = getattr(error, "problem_mark", None)
    place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    refusal = InvalidDocument(f"not YAML: {cut(str(problem))}{place}")
    refusal.line = mark.line + 1 if mark else None
    return refusal


class _MergeKey(str):
    """A plain ``<<``, as opposed to a quoted one."""


_MERGE: Final = _MergeKey("<<")


@dataclass(slots=True)
class _Open:
    """An open mapping or sequence."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    start: int
    first_duplicate: int
    is_key: bool
    key: str | None = None
    repeated: str | None = None
    """A duplicate key, in Go's syntax."""
    line: int = 0
    """The line of its value."""
    typed: dict[str, set[Mark | None]] | None = None
    """The marks of keys by their JSON name, if one is not a string."""
    merged: list[Any] | None = None
    """Sources of merges, applied at the end."""
    lines: dict[str, int] | None = None
    """Lines of the values, if the mapping may be merged into others."""
    is_merge: bool = False
    """Whether it is the source of a merge, or a list of them."""
    height: int = 1


@dataclass(frozen=True, slots=True)
class _AnchoredNode:
    value: Any
    cost: int
    height: int
    duplicates: tuple[DuplicateKey, ...] = ()
    """Paths are relative to the value."""


class _Composer:
    """Counts bytes as if every alias were expanded."""

    def __init__(self, limits: Limits, dialect: YamlDialect, duplicates: Duplicates) -> None:
        self._limits = limits
        self._dialect = dialect
        self._values, self._names = dialect.values, dialect.keys
        self._is_ordered = dialect.merging is Merging.IN_ORDER
        self._is_strict = duplicates is Duplicates.REFUSED
        self._spent = 0
        self._begin()

    def _begin(self) -> None:
        self._open: list[_Open] = []
        self._anchors: dict[str, _AnchoredNode | None] = {}
        self._root: Any = None
        self._losses: list[Loss] = []
        self._duplicates: list[DuplicateKey] = []
        self._lines: dict[int, tuple[Any, dict[str, int]]] = {}
        """Lines of values in mappings that can be merged, by identity."""

    def documents(self, events: Iterator[Any], *, with_marks: bool) -> Iterator[YamlDocument]:
        marks: list[Any] = []
        event = None
        try:
            for event in events:
                kind = event.__class__
                if with_marks:
                    marks.append(event)
                if kind is yaml.ScalarEvent:
                    self._scalar(event)
                elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                    self._end()
                elif kind is yaml.MappingStartEvent:
                    self._start(event, {})
                elif kind is yaml.SequenceStartEvent:
                    self._start(event, [])
                elif kind is yaml.AliasEvent:
                    self._alias(event)
                elif kind is yaml.DocumentStartEvent:
                    self._begin()
                    marks.clear()
                elif kind is yaml.DocumentEndEvent:
                    yield YamlDocument(self._root, tuple(self._duplicates), marks[:-1], tuple(self._losses))
        except InvalidDocument as error:
            if event is not None:
                error.line = event.start_mark.line + 1
            # go-yaml parses a document before decoding it, so syntax errors are reported first.
            if not self._dialect.scalar_keys and not error.reason.startswith(_UNKNOWN_ANCHOR):
                next((each for each in events if each.__class__ is yaml.DocumentEndEvent), None)
            raise
        except ConverterError as error:
            if event is not None:
                error.line = event.start_mark.line + 1
            raise

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        text = event.value
        self._spent += len(text) + NODE_BYTES
        if self._spent > self._limits.max_expanded_bytes:
            self._spend(0)
        parent = self._open[-1] if self._open else None
        if parent is not None and parent.key is None and parent.value.__class__ is dict:
            self._scalar_key(parent, event)
            return
        value = self._value(event)
        if event.anchor is not None:
            self._anchor(event.anchor, _AnchoredNode(value, len(text) + NODE_BYTES, 0))
        if parent is not None and (parent.lines is not None or parent.repeated is not None):
            self._note_line(event)
        self._add(value, 0)

    def _scalar_key(self, parent: _Open, event: yaml.ScalarEvent) -> None:
        text, is_plain, dialect = event.value, event.implicit[0], self._dialect
        if text == "<<" and dialect.merging is not Merging.NONE and (is_plain or event.tag == _MERGE_TAG):
            parent.key = _MERGE
            return
        name, mark = text, None
        try:
            if event.tag is not None and not dialect.scalar_keys:
                name, mark = kubernetes_key(dialect.tagged(text, event.tag, is_plain))
            elif is_plain:
                name, mark = self._names[text]
        except ValueError as error:
            self._refuse(str(error))
        if event.anchor is not None:
            self._anchor(
                event.anchor, _AnchoredNode(text if mark is None else mark[1], len(text) + NODE_BYTES, 0)
            )
        self._key(parent, name, mark, text)

    def _key(self, parent: _Open, key: str, mark: Mark | None, text: str) -> None:
        parent.key = key
        if mark is not None and parent.typed is None:
            parent.typed = {}
        if key not in parent.value and mark is None:
            return
        # 1 and "1" are different keys in Go, and equal names in JSON.
        is_there = key in parent.value
        marks: set[Mark | None] = {None} if is_there else set()
        if parent.typed is not None:
            marks = parent.typed.setdefault(key, marks)
        if is_there:
            if self._is_strict:
                self._refuse("the key is there twice")
            reason = f"{cut(text)} is there already, or a key that is read so; the last counts"
            self._losses.append(Loss(self._pointer(), "key", reason))
            if mark in marks:
                parent.repeated = go_syntax(key if mark is None else mark[1])
        marks.add(mark)

    def _value(self, event: yaml.ScalarEvent) -> Any:
        text, is_plain = event.value, event.implicit[0]
        try:
            if event.tag is not None:
                return self._dialect.tagged(text, event.tag, is_plain)
            if not is_plain:
                return text
            value = self._values[text]
        except ValueError as error:
            self._refuse(str(error))
        if value.__class__ is float and text.strip("+-").isdecimal() and is_rounded(int(text)):
            self._losses.append(rounding_loss(int(text), self._pointer()))
        return value

    def _anchor(self, name: str, anchored: _AnchoredNode | None) -> None:
        if not self._dialect.has_aliases:
            self._refuse("an anchor")
        self._anchors[name] = anchored

    def _alias(self, event: yaml.AliasEvent) -> None:
        name = event.anchor or ""
        anchored = self._anchors.get(name)
        if anchored is None:
            if name in self._anchors:
                self._refuse(f"yaml: anchor '{cut(name)}' value contains itself")
            self._refuse(f"{_UNKNOWN_ANCHOR} '{cut(name)}' referenced")
        if len(self._open) + anchored.height > self._limits.max_depth:
            self._refuse_depth()
        self._spend(anchored.cost)
        parent = self._open[-1] if self._open else None
        if parent is not None and parent.key is None and type(parent.value) is dict:
            self._alias_key(parent, anchored.value)
            return
        if parent is not None and parent.key is _MERGE and self._is_ordered and type(anchored.value) is list:
            self._refuse(_WANT_MAP)
        if anchored.duplicates:
            path = self._path()
            self._duplicates += [replace(each, path=path + each.path) for each in anchored.duplicates]
        self._note_line(event)
        self._add(anchored.value, anchored.height)

    def _alias_key(self, parent: _Open, value: Any) -> None:
        if self._dialect.scalar_keys:
            self._refuse("an alias cannot be a key")
        if isinstance(value, dict | list):
            self._refuse(f"yaml: invalid map key: {go_syntax(value)}")
        self._key(parent, *kubernetes_key(value), str(value))

    def _start(self, event: yaml.CollectionStartEvent, value: dict[str, Any] | list[Any]) -> None:
        parent = self._open[-1] if self._open else None
        is_key = parent is not None and parent.key is None and type(parent.value) is dict
        if is_key and self._dialect.scalar_keys:
            self._refuse("a key must be a scalar")
        if event.tag is not None:
            tags = self._dialect.container_tags
            if tags is not None and event.tag not in tags:
                self._refuse(f"the tag {cut(event.tag)} is not known")
        if len(self._open) >= self._limits.max_depth:
            self._refuse_depth()
        self._spent += NODE_BYTES
        if self._spent > self._limits.max_expanded_bytes:
            self._spend(0)
        opened = _Open(value, event.anchor, self._spent, len(self._duplicates), is_key)
        if event.anchor is not None:
            self._anchor(event.anchor, None)
            opened.lines = {}
        if parent is not None:
            if parent.key is _MERGE or parent.is_merge:
                opened.is_merge, opened.lines = True, {}
            if parent.lines is not None or parent.repeated is not None:
                self._note_line(event)
        self._open.append(opened)

    def _note_line(self, event: Any) -> None:
        """The line of a value, if it may be needed."""
        parent = self._open[-1] if self._open else None
        if parent is not None and parent.key is not None:
            if parent.lines is not None:
                parent.lines[parent.key] = event.start_mark.line + 1
            if parent.repeated is not None:
                parent.line = event.start_mark.line + 1

    def _end(self) -> None:
        done = self._open.pop()
        value = done.value
        if done.is_key:
            self._refuse(f"yaml: invalid map key: {go_syntax(value)}")
        for key, marks in (done.typed or {}).items():
            for refused in filter(None, map(refused_key, marks)):
                shown = go_syntax(value[key])  # type: ignore[call-overload]
                self._refuse(f"unsupported map key of type: {refused}, value: {shown}")
        if type(value) is dict:
            for source in done.merged or ():
                self._merge_missing(value, source)
            if self._dialect.sorts_keys:
                value = dict(sorted(value.items()))
            if done.lines is not None:
                self._lines[id(value)] = value, done.lines
        if done.anchor is not None:
            depth, inner = len(self._path()), self._duplicates[done.first_duplicate :]
            self._spend(len(inner) * NODE_BYTES)
            relative = tuple([replace(each, path=each.path[depth:]) for each in inner])
            cost = self._spent - done.start + NODE_BYTES
            self._anchors[done.anchor] = _AnchoredNode(value, cost, done.height, relative)
        self._add(value, done.height)

    def _add(self, value: Any, height: int) -> None:
        if not self._open:
            self._root = value
            return
        parent = self._open[-1]
        if parent.height <= height:
            parent.height = height + 1
        into, key = parent.value, parent.key
        if type(into) is list:
            into.append(value)
        elif key is _MERGE:
            self._merge(parent, into, value)
        elif type(into) is dict and key is not None:
            into[key] = value
            if parent.repeated is not None:
                self._duplicates.append(DuplicateKey(parent.line, self._path(), parent.repeated))
                parent.repeated = None
        parent.key = None

    def _merge(self, parent: _Open, into: Any, source: Any) -> None:
        if not self._is_ordered:
            if parent.merged is None:
                parent.merged = []
            parent.merged.append(source)
            return
        parent.key = None
        sources = source if isinstance(source, list) else [source]
        for each in sources[::-1]:  # earlier ones take precedence
            if not isinstance(each, dict):
                self._refuse(_WANT_MAP)
            _, lines = self._lines.get(id(each), (None, {}))
            for key, value in each.items():
                if key in into:
                    again = DuplicateKey(lines.get(key, 0), (*self._path(), key), go_syntax(key))
                    self._duplicates.append(again)
                    self._spend(NODE_BYTES)
                into[key] = value
            if parent.lines is not None:
                parent.lines.update(lines)

    def _merge_missing(self, target: dict[str, Any], source: Any) -> None:
        for each in source if isinstance(source, list) else [source]:
            if not isinstance(each, dict):
                self._refuse("only a mapping can be merged")
            for key, value in each.items():
                target.setdefault(key, value)

    def _spend(self, cost: int) -> None:
        self._spent += cost
        if self._spent > self._limits.max_expanded_bytes:
            raise LimitExceeded("too large, aliases written out", pointer=self._pointer())

    def _path(self) -> Path:
        """The path of the current value."""
        places = [len(each.value) if isinstance(each.value, list) else each.key for each in self._open]
        return tuple(place for place in places if place is not None and place is not _MERGE)

    def _pointer(self) -> str:
        return pointer_to(*self._path())

    def _refuse_depth(self) -> NoReturn:
        raise LimitExceeded(f"nested more than {self._limits.max_depth} deep", pointer=self._pointer())

    def _refuse(self, reason: str) -> NoReturn:
        raise InvalidDocument(reason, pointer=self._pointer())
