"""YAML in, Documents out: what people keep CRDs and Swagger files in.

Built from libyaml's events, without recursion and without PyYAML's constructors: there ``=`` is an error,
``1:30`` is ninety, and a date is an object. Here a plain scalar is what its schema says (``scalars``): in
manifests what kubectl makes of it, elsewhere what YAML 1.2 does, with a key its own text. An alias is counted
as if it were written out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
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
    documents = []
    composer = _Composer(limits, is_manifest=is_manifest)
    for value in composer.documents(_events(data)):
        if isinstance(value, dict):
            documents.append(value)
        elif value is not None:
            raise InvalidDocument("not a YAML mapping")
    if losses is not None:
        losses += composer.losses
    return tuple(documents)


def is_plain_text(text: str) -> bool:
    """Whether an unquoted scalar of this text is that string."""
    try:
        return isinstance(yaml_1_2(text), str)
    except ValueError:
        return False


def _events(data: bytes) -> Iterator[yaml.Event]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.parse(data, Loader=loader)
    except (yaml.YAMLError, UnicodeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
        raise InvalidDocument(f"not YAML: {cut(str(problem))}{place}") from error


@dataclass(slots=True)
class _Open:
    """A mapping or sequence whose end has not come."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    start: int
    key: str | None = None
    texts: dict[str, str] = field(default_factory=dict)
    """What was written for keys that are called something else."""
    merged: list[Any] = field(default_factory=list)
    height: int = 1


@dataclass(frozen=True, slots=True)
class _Anchored:
    value: Any
    cost: int
    height: int


class _Composer:
    """What is spent counts bytes as if every alias were written out."""

    def __init__(self, limits: Limits, *, is_manifest: bool) -> None:
        self.losses: list[Loss] = []
        self._limits = limits
        self._schema = yaml_1_1 if is_manifest else yaml_1_2
        self._is_manifest = is_manifest
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored | None] = {}
        self._spent = 0
        self._root: Any = None

    def documents(self, events: Iterator[yaml.Event]) -> Iterator[Any]:
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._scalar(event)
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event.anchor)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._start(event)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                self._end()
            elif isinstance(event, yaml.DocumentStartEvent):
                self._anchors = {}
                self._root = None
            elif isinstance(event, yaml.DocumentEndEvent):
                yield self._root

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._spend(len(event.value) + _NODE_BYTES)
        if self._awaits_key():
            self._key(self._open[-1], event)
            return
        value = self._value(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, len(event.value) + _NODE_BYTES, 0)
        self._add(value, 0)

    def _awaits_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def _key(self, parent: _Open, event: yaml.ScalarEvent) -> None:
        if event.value == "<<" and event.implicit[0]:
            parent.key = "<<"
            parent.merged.append(None)
            return
        parent.key = self._name(event) if self._is_manifest and event.implicit[0] else event.value
        if parent.key in parent.value:
            if parent.texts.get(parent.key, parent.key) == event.value:
                self._refuse("the key is there twice")
            reason = f"{cut(event.value)} is another key that is read so, and there too; the last counts"
            self.losses.append(Loss(self._pointer(), "key", reason))
        if parent.key != event.value:
            parent.texts[parent.key] = event.value

    def _name(self, event: yaml.ScalarEvent) -> str:
        try:
            return key_1_1(event.value)
        except ValueError as error:
            self._refuse(str(error))

    def _value(self, event: yaml.ScalarEvent) -> Any:
        if event.tag in _TEXT_TAGS:
            return event.value
        if event.implicit[0] or event.tag in _PLAIN_TAGS:
            return self._plain(event.value)
        if event.tag is None:
            return event.value
        return self._refuse(f"the tag {cut(event.tag)} is not known")

    def _plain(self, text: str) -> Any:
        try:
            value = self._schema(text)
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

    def _start(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        if self._awaits_key():
            self._refuse("a key must be a scalar")
        if event.tag is not None and event.tag not in _CONTAINER_TAGS:
            self._refuse(f"the tag {cut(event.tag)} is not known")
        if len(self._open) >= self._limits.max_depth:
            raise LimitExceeded(f"nested more than {self._limits.max_depth} deep", pointer=self._pointer())
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._spend(_NODE_BYTES)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        self._open.append(_Open({} if is_mapping else [], event.anchor, self._spent))

    def _end(self) -> None:
        done = self._open.pop()
        if isinstance(done.value, dict):
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
        parent.height = max(parent.height, height + 1)
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.key == "<<" and parent.merged and parent.merged[-1] is None:
            parent.merged[-1] = value
            parent.key = None
        elif parent.key is not None:
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
