"""YAML in, Documents out: what people keep CRDs and Swagger files in.

Built from libyaml's events, without recursion and without PyYAML's constructors: there ``=`` is an error,
``1:30`` is ninety, and a date is an object. Here a plain scalar is what its schema says (``scalars``): in
manifests what kubectl makes of it, elsewhere what YAML 1.2 does, with a key its own text. An alias is counted
as if it were written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import yaml

from specmux_converters.document import DEFAULT_LIMITS, Document, Limits, rounding
from specmux_converters.errors import InvalidDocument, LimitExceeded, cut
from specmux_converters.json_text import is_rounded
from specmux_converters.losses import Loss, pointer_to
from specmux_converters.yaml.scalars import key_1_1, yaml_1_1, yaml_1_2

_TAG: Final = "tag:yaml.org,2002:"
_TEXT_TAGS: Final = frozenset({"!", f"{_TAG}str", f"{_TAG}binary", f"{_TAG}timestamp"})
_PLAIN_TAGS: Final = frozenset(
    {f"{_TAG}{name}" for name in ("int", "float", "bool", "null", "value", "merge")}
)
_CONTAINER_TAGS: Final = frozenset({"!", f"{_TAG}map", f"{_TAG}seq", f"{_TAG}omap", f"{_TAG}set"})
MAX_TAG_DIRECTIVES: Final = 1000
"""libyaml compares each with all before it: 40,000 of them would take three seconds."""
_SHORT: Final = 40
"""Characters of a plain scalar that is remembered; names and types are shorter, descriptions are longer."""
_MOST_KNOWN: Final = 10_000
_NODE_BYTES: Final = 128
"""What a value counts for beside its text: 256 MiB are two million of them, which take eight seconds."""


def parse_yaml_stream(
    data: bytes,
    *,
    limits: Limits = DEFAULT_LIMITS,
    is_manifest: bool = False,
    losses: list[Loss] | None = None,
) -> tuple[Document, ...]:
    """The documents in ``data``, the empty ones left out; a manifest is read as YAML 1.1. What reading
    changes is added to ``losses``. Errors as ``document.parse``.

    Aliased values are the same object wherever they stand: read them, never write into them.
    """
    limits.check_bytes(data)
    if data.replace(b"\0", b"").count(b"%TAG") > MAX_TAG_DIRECTIVES:  # in UTF-16, too
        raise LimitExceeded(f"more than {MAX_TAG_DIRECTIVES} %TAG directives")
    composer = _Composer(limits, is_manifest=is_manifest)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Not yaml.parse, which asks for each event whether there is one first.
        documents = [*composer.documents(iter(loader(data).get_event, None))]
    except (yaml.YAMLError, UnicodeError) as error:
        raise _refusal(error) from error
    if losses is not None:
        losses += composer.losses
    return tuple(documents)


def is_plain_text(text: str) -> bool:
    """Whether an unquoted scalar of this text is that string."""
    try:
        return isinstance(yaml_1_2(text), str)
    except ValueError:
        return False


def _refusal(error: yaml.YAMLError | UnicodeError) -> InvalidDocument:
    mark = getattr(error, "problem_mark", None)
    place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    return InvalidDocument(f"not YAML: {cut(str(problem))}{place}")


@dataclass(slots=True)
class _Open:
    """A mapping or sequence whose end has not come."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    start: int
    key: str | None = None
    texts: dict[str, str] | None = None
    """What was written for keys that are called something else."""
    merged: list[Any] | None = None
    height: int = 1


@dataclass(frozen=True, slots=True)
class _Anchored:
    value: Any
    cost: int
    height: int


class _Known(dict[str, Any]):
    """What short plain scalars are, each asked for once: manifests repeat some hundreds."""

    def __init__(self, read: Callable[[str], Any]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, text: str) -> Any:
        value = self._read(text)
        if len(text) <= _SHORT and len(self) < _MOST_KNOWN:
            self[text] = value
        return value


class _Composer:
    """What is spent counts bytes as if every alias were written out."""

    def __init__(self, limits: Limits, *, is_manifest: bool) -> None:
        self.losses: list[Loss] = []
        self._limits = limits
        self._values = _Known(yaml_1_1 if is_manifest else yaml_1_2)
        self._names = _Known(key_1_1)
        self._is_manifest = is_manifest
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored | None] = {}
        self._spent = 0
        self._root: Any = None

    def documents(self, events: Iterator[Any]) -> Iterator[Document]:
        for event in events:
            kind = event.__class__
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._end()
            elif kind is yaml.MappingStartEvent:
                self._start(event, {})
            elif kind is yaml.SequenceStartEvent:
                self._start(event, [])
            elif kind is yaml.AliasEvent:
                self._alias(event.anchor)
            elif kind is yaml.DocumentStartEvent:
                self._anchors = {}
                self._root = None
            elif kind is yaml.DocumentEndEvent and self._root is not None:
                if not isinstance(self._root, dict):
                    raise InvalidDocument("not a YAML mapping")
                yield self._root

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        text = event.value
        self._spent += len(text) + _NODE_BYTES
        if self._spent > self._limits.max_expanded_bytes:
            self._spend(0)
        parent = self._open[-1] if self._open else None
        if parent is not None and parent.key is None and parent.value.__class__ is dict:
            self._key(parent, text, is_plain=event.implicit[0])
            return
        value = self._value(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, len(text) + _NODE_BYTES, 0)
        self._add(value, 0)

    def _awaits_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def _key(self, parent: _Open, text: str, *, is_plain: bool) -> None:
        if text == "<<" and is_plain:
            parent.key = "<<"
            if parent.merged is None:
                parent.merged = []
            parent.merged.append(None)
            return
        try:
            key: str = self._names[text] if self._is_manifest and is_plain else text
        except ValueError as error:
            self._refuse(str(error))
        parent.key = key
        if key in parent.value:
            if (parent.texts or {}).get(key, key) == text:
                self._refuse("the key is there twice")
            reason = f"{cut(text)} is another key that is read so, and there too; the last counts"
            self.losses.append(Loss(self._pointer(), "key", reason))
        if key != text:
            if parent.texts is None:
                parent.texts = {}
            parent.texts[key] = text

    def _value(self, event: yaml.ScalarEvent) -> Any:
        if event.tag is None:
            return self._plain(event.value) if event.implicit[0] else event.value
        if event.tag in _TEXT_TAGS:
            return event.value
        if event.implicit[0] or event.tag in _PLAIN_TAGS:
            return self._plain(event.value)
        return self._refuse(f"the tag {cut(event.tag)} is not known")

    def _plain(self, text: str) -> Any:
        try:
            value = self._values[text]
        except ValueError as error:
            self._refuse(str(error))
        if value.__class__ is float and text.strip("+-").isdecimal() and is_rounded(int(text)):
            self.losses.append(rounding(int(text), self._pointer()))
        return value

    def _alias(self, name: str | None) -> None:
        anchored = self._anchors.get(name or "")
        if anchored is None:
            self._refuse("an alias inside its own value" if name in self._anchors else "no such anchor")
        if len(self._open) + anchored.height > self._limits.max_depth:
            raise LimitExceeded(f"nested more than {self._limits.max_depth} deep", pointer=self._pointer())
        self._spend(anchored.cost)
        if self._awaits_key():
            self._refuse("an alias cannot be a key")
        self._add(anchored.value, anchored.height)

    def _start(self, event: yaml.CollectionStartEvent, value: dict[str, Any] | list[Any]) -> None:
        if self._awaits_key():
            self._refuse("a key must be a scalar")
        if event.tag is not None and event.tag not in _CONTAINER_TAGS:
            self._refuse(f"the tag {cut(event.tag)} is not known")
        if len(self._open) >= self._limits.max_depth:
            raise LimitExceeded(f"nested more than {self._limits.max_depth} deep", pointer=self._pointer())
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._spend(_NODE_BYTES)
        self._open.append(_Open(value, event.anchor, self._spent))

    def _end(self) -> None:
        done = self._open.pop()
        if done.merged is not None and isinstance(done.value, dict):
            for source in done.merged:
                self._merge(done.value, source)
        if done.anchor is not None:
            cost = self._spent - done.start + _NODE_BYTES
            self._anchors[done.anchor] = _Anchored(done.value, cost, done.height)
        self._add(done.value, done.height)

    def _merge(self, target: dict[str, Any], source: Any) -> None:
        """``<<`` (yaml.org/type/merge): keys that are written, and earlier sources, win."""
        for each in source if isinstance(source, list) else [source]:
            if not isinstance(each, dict):
                self._refuse("only a mapping can be merged")
            for key, value in each.items():
                target.setdefault(key, value)

    def _add(self, value: Any, height: int) -> None:
        if not self._open:
            self._root = value
            return
        parent = self._open[-1]
        if parent.height <= height:
            parent.height = height + 1
        if type(parent.value) is list:
            parent.value.append(value)
        elif parent.key == "<<" and parent.merged and parent.merged[-1] is None:
            parent.merged[-1] = value
            parent.key = None
        elif type(parent.value) is dict and parent.key is not None:
            parent.value[parent.key] = value
            parent.key = None

    def _spend(self, cost: int) -> None:
        self._spent += cost
        if self._spent > self._limits.max_expanded_bytes:
            raise LimitExceeded("too large, aliases written out", pointer=self._pointer())

    def _pointer(self) -> str:
        places = [len(each.value) if isinstance(each.value, list) else each.key for each in self._open]
        return pointer_to(*(place for place in places if place is not None))

    def _refuse(self, reason: str) -> NoReturn:
        raise InvalidDocument(reason, pointer=self._pointer())
