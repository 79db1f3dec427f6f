"""YAML as Kubernetes reads it: go-yaml v2 (YAML 1.1), then JSON (sigs.k8s.io/yaml). The first document only.

Strict reading says which keys are set already, in one list; reading itself keeps the last of equal keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from struct import pack
from typing import Any, Final, NoReturn

import yaml

from specmux_converters.go.text import INT64_MAX, Number, float_text, general_text, go_syntax
from specmux_schemas.validation.decoding.json_reader import MOST_DEPTH
from specmux_schemas.validation.decoding.yaml_scalars import plain_value, resolve
from specmux_schemas.validation.errors import Undecodable
from specmux_schemas.validation.report import Path

MOST_DECODED: Final = 1_000_000
"""Values, aliases written out: an apiserver's bound is softer (go-yaml's allowedAliasRatio)."""

ERRORS_PREFIX: Final = "yaml: unmarshal errors:\n"

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STEPS: Final[dict[type, int]] = {
    yaml.ScalarEvent: 0,
    yaml.AliasEvent: 0,
    yaml.MappingStartEvent: 1,
    yaml.SequenceStartEvent: 1,
    yaml.MappingEndEvent: -1,
    yaml.SequenceEndEvent: -1,
}
"""How each event of the content changes the depth."""

_ENDS: Final = frozenset((yaml.MappingEndEvent, yaml.SequenceEndEvent))
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_FLOAT32_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class DuplicateKey:
    """A key that its mapping has already. ``line`` is that of the value, from 1."""

    line: int
    path: Path
    key: str

    @property
    def text(self) -> str:
        return f"line {self.line}: key {self.key} already set in map"


@dataclass(frozen=True, slots=True)
class YAMLDocument:
    value: Any
    """JSON; keys sorted, as Go writes them."""
    duplicates: tuple[DuplicateKey, ...]
    events: list[Any]
    """libyaml's, of this document: for places."""


def strict_yaml_error(duplicates: Iterable[DuplicateKey]) -> str:
    """All of them, as an apiserver says them: in one error."""
    return ERRORS_PREFIX + "\n".join(f"  {each.text}" for each in duplicates)


def read_yaml(data: bytes) -> YAMLDocument:
    """Raises Undecodable for what go-yaml, or JSON behind it, refuses."""
    events = _first_document(data)
    reader = _Reader(events)
    value = reader.value() if events else None
    return YAMLDocument(_json(value), tuple(reader.duplicates), events)


def _first_document(data: bytes) -> list[Any]:
    """The events between the beginning and the end of the first document."""
    events: list[Any] = []
    loader = None
    depth = 0
    try:
        loader = _LOADER(data)
        following, step_of = loader.get_event, _STEPS.get
        while (event := following()) is not None:
            step = step_of(type(event))
            if step is not None:
                events.append(event)
                depth += step
                if depth > MOST_DEPTH:  # libyaml takes quadratic time for what is nested deeply
                    raise Undecodable(f"nested more than {MOST_DEPTH} deep", line=event.start_mark.line + 1)
            elif type(event) is yaml.DocumentEndEvent:
                break
    except yaml.YAMLError as error:
        raise _syntax_error(error) from error
    except UnicodeError as error:
        raise Undecodable("yaml: invalid Unicode character") from error
    finally:
        if loader is not None:
            loader.dispose()
    return events


def _syntax_error(error: yaml.YAMLError) -> Undecodable:
    """parser.fail: the line counts from 1 for the scanner, from 0 for the parser; none on the first."""
    if isinstance(error, yaml.MarkedYAMLError):
        line = 0
        if error.problem_mark is not None and error.problem_mark.line:
            line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
        elif error.context_mark is not None:
            line = error.context_mark.line
        where = f"line {line}: " if line else ""
        place = error.problem_mark.line + 1 if error.problem_mark is not None else None
        return Undecodable(f"yaml: {where}{error.problem}", line=place)
    return Undecodable(f"yaml: {getattr(error, 'reason', None) or 'unknown problem parsing YAML content'}")


class _Reader:
    """Reads the events as go-yaml decodes its nodes; an alias reads those of its anchor again."""

    def __init__(self, events: list[Any]) -> None:
        self._events = events
        self._at = 0
        self._targets = _targets(events)
        self._reading: set[int] = set()
        self._path: list[str | int] = []
        self._decoded = 0
        self.duplicates: list[DuplicateKey] = []

    def value(self) -> Any:
        event = self._events[self._at]
        self._at += 1
        self._decoded += 1
        if self._decoded > MOST_DECODED:
            raise Undecodable("yaml: document contains excessive aliasing")
        kind = type(event)
        if kind is yaml.ScalarEvent:
            if event.tag is None:
                return plain_value(event.value) if event.implicit[0] else event.value
            return resolve(event.value, event.tag)
        if kind is yaml.AliasEvent:
            with self._at_target(self._at - 1):
                return self.value()
        if len(self._path) >= MOST_DEPTH:
            raise Undecodable(f"nested more than {MOST_DEPTH} deep", path=tuple(self._path))
        return self._mapping({}) if kind is yaml.MappingStartEvent else self._sequence()

    @contextmanager
    def _at_target(self, alias: int) -> Iterator[None]:
        """Reads where the alias leads, and comes back."""
        if alias in self._reading:
            name = self._events[alias].anchor
            raise Undecodable(f"yaml: anchor '{name}' value contains itself")
        self._reading.add(alias)
        after, self._at = self._at, self._targets[alias]
        yield
        self._at = after
        self._reading.discard(alias)

    def _sequence(self) -> list[Any]:
        items: list[Any] = []
        while type(self._events[self._at]) is not yaml.SequenceEndEvent:
            self._path.append(len(items))
            items.append(self.value())
            self._path.pop()
        self._at += 1
        return items

    def _mapping(self, into: dict[Any, Any]) -> dict[Any, Any]:
        events = self._events
        while type(events[self._at]) is not yaml.MappingEndEvent:
            if _is_merge(events[self._at]):
                self._at += 1
                self._merge(into)
                continue
            key = self.value()
            start = self._at
            if type(key) is str:
                self._path.append(key)
            else:
                self._path.append(self._key_path(key))
            item = self.value()
            self._set(into, key, item, start)
            self._path.pop()
        self._at += 1
        return into

    def _key_path(self, key: Any) -> str:
        if isinstance(key, dict | list):
            raise Undecodable(f"yaml: invalid map key: {go_syntax(key)}", path=tuple(self._path))
        return _key_text(key) if key is not None else ""

    def _set(self, into: dict[Any, Any], key: Any, item: Any, start: int) -> None:
        """``start`` is the value's event."""
        # Python's 1, 1.0 and True are one key, Go's are three.
        mark = key if type(key) is str else (type(key), key)
        if mark in into:
            line = self._events[start].start_mark.line + 1
            self.duplicates.append(DuplicateKey(line, tuple(self._path), go_syntax(key)))
        into[mark] = item

    def _merge(self, into: dict[Any, Any]) -> None:
        event = self._events[self._at]
        if type(event) is yaml.SequenceStartEvent:
            self._merge_sequence(into)
        else:
            self._merge_one(into)

    def _merge_one(self, into: dict[Any, Any]) -> None:
        start = self._at
        kind = type(self._events[self._targets.get(start, start)])
        if kind is not yaml.MappingStartEvent:
            _want_map()
        self._at += 1
        if start not in self._targets:
            self._mapping(into)
            return
        with self._at_target(start):
            self._at += 1
            self._mapping(into)

    def _merge_sequence(self, into: dict[Any, Any]) -> None:
        """Backwards: earlier ones take precedence."""
        self._at += 1
        starts = []
        while type(self._events[self._at]) is not yaml.SequenceEndEvent:
            starts.append(self._at)
            self._skip()
        after = self._at + 1
        for start in reversed(starts):
            self._at = start
            self._merge_one(into)
        self._at = after

    def _skip(self) -> None:
        depth = 0
        while True:
            event = self._events[self._at]
            self._at += 1
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth == 0:
                return


def _is_merge(event: Any) -> bool:
    if type(event) is not yaml.ScalarEvent or event.value != "<<":
        return False
    return bool(event.implicit[0]) or event.tag == _MERGE_TAG


def _targets(events: list[Any]) -> dict[int, int]:
    """Where each alias leads: the last value before it that has the anchor."""
    anchors: dict[str, int] = {}
    targets: dict[int, int] = {}
    for index, event in enumerate(events):
        if type(event) in _ENDS or event.anchor is None:
            continue
        name = event.anchor
        if type(event) is not yaml.AliasEvent:
            anchors[name] = index
        elif name in anchors:
            targets[index] = anchors[name]
        else:
            raise Undecodable(f"yaml: unknown anchor '{name}' referenced")
    return targets


def _want_map() -> NoReturn:
    raise Undecodable("yaml: map merge requires map or sequence of maps as the value")


def _json(value: Any) -> Any:
    """convertToJSONableObject, then json.Marshal: keys become text and are sorted, whole floats integers."""
    kind = type(value)
    if kind is str:
        return value
    if kind is dict:
        texts = {key if type(key) is str else _other_key(key, item): item for key, item in value.items()}
        return {key: _json(texts[key]) for key in sorted(texts)}
    if kind is list:
        return [_json(item) for item in value]
    if kind is float:
        return _finite(value)
    if kind is int and not -INT64_MAX - 1 <= value <= INT64_MAX:
        return Number(str(value))
    return value


def _other_key(mark: tuple[type, Any], item: Any) -> str:
    key = mark[1]
    if key is None:
        shown = go_syntax(_shown(item))
        raise Undecodable(f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}")
    return _key_text(key)


def _shown(item: Any) -> Any:
    """A decoded value with its keys as they were."""
    if type(item) is dict:
        return {key if type(key) is str else key[1]: _shown(inner) for key, inner in item.items()}
    return [_shown(inner) for inner in item] if type(item) is list else item


def _key_text(key: Any) -> str:
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case float():
            text = general_text(_shortest_float32(key))
            return {"+Inf": ".inf", "-Inf": "-.inf", "NaN": ".nan"}.get(text, text)
        case _:
            return str(key)


def _shortest_float32(value: float) -> float:
    """The number of the fewest digits that is the same as a 32-bit float: keys are written so."""
    try:
        wanted = pack("f", value)
    except OverflowError:
        return float("inf") if value > 0 else -float("inf")
    for digits in range(1, _FLOAT32_DIGITS):
        short = float(f"{value:.{digits}g}")
        if pack("f", short) == wanted:
            return short
    return value


def _finite(value: float) -> int | float:
    if value != value or value in (float("inf"), -float("inf")):
        raise Undecodable(f"json: unsupported value: {general_text(value)}")
    text = float_text(value)
    if "." in text or "e" in text or not -INT64_MAX - 1 <= value < INT64_MAX:
        return Number(text)
    return int(text)
