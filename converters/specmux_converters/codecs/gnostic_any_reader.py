"""The text of gnostic's ``Any{yaml}`` as a JSON value.

libyaml takes the text apart; what a plain scalar means is go-yaml's rule (``go.scalars``), not PyYAML's.
Aliases, tags and directives are refused: Go writes none, aliases make small texts expand without bound, and
libyaml compares each %TAG with all before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from specmux_converters.errors import InvalidDocument, LimitExceeded, cut
from specmux_converters.go.scalars import read_plain

_FRAME: Final = (
    yaml.StreamStartEvent,
    yaml.StreamEndEvent,
    yaml.DocumentStartEvent,
    yaml.DocumentEndEvent,
)
_DIRECTIVE: Final = re.compile("(?:\\A\ufeff?|[\n\r\x85\u2028\u2029])%(?:TAG|YAML)")
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str, *, max_depth: int) -> Any:
    """Raises InvalidDocument for what is not one YAML document of JSON's data model; "" is null."""
    if "%" in text and _DIRECTIVE.search(text):
        raise InvalidDocument("YAML with a directive")
    # Events are taken one by one: libyaml's time is quadratic in the depth, which is checked on the way.
    events = (event for event in yaml.parse(text, Loader=_LOADER) if not isinstance(event, _FRAME))
    try:
        first = next(events, None)
        if first is None:
            return None
        value = _value(first, events, max_depth)
        if next(events, None) is not None:
            raise InvalidDocument("more than one YAML document")
    except yaml.YAMLError as error:
        raise InvalidDocument(f"not YAML: {cut(str(error))}") from error
    return value


def _value(event: yaml.Event, rest: Iterator[yaml.Event], depth: int) -> Any:
    if depth < 0:
        raise LimitExceeded("YAML nested too deeply")
    if getattr(event, "anchor", None) is not None or getattr(event, "tag", None) is not None:
        raise InvalidDocument("YAML with an alias, an anchor or a tag")
    match event:
        case yaml.ScalarEvent():
            return _scalar(event)
        case yaml.SequenceStartEvent():
            items = []
            while not isinstance(event := next(rest), yaml.SequenceEndEvent):
                items.append(_value(event, rest, depth - 1))
            return items
    entries: dict[str, Any] = {}
    while not isinstance(event := next(rest), yaml.MappingEndEvent):
        if not isinstance(event, yaml.ScalarEvent):
            raise InvalidDocument("a YAML key that is not text")
        if event.value in entries:
            raise InvalidDocument(f"the YAML key {cut(event.value)!r} twice")
        entries[event.value] = _value(next(rest), rest, depth - 1)
    return entries


def _scalar(event: yaml.ScalarEvent) -> object:
    if not event.implicit[0]:
        return event.value
    value = read_plain(event.value)
    if isinstance(value, float) and value - value != 0:
        raise InvalidDocument("a YAML number that is not finite")
    return value
