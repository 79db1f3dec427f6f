"""A manifest to fill in, and one that an apiserver accepts.

The first has required fields and every ``spec``, each with its default, otherwise its first enum value,
otherwise empty; comments state what is required and which values are allowed. The second has values where a
schema suggests none: requirements of built-in kinds beyond their schemas exist only in Go code (pkg/apis,
validation.go), so they are a table, ``example_objects.json``. Custom resources state all in their schemas, or
in rules, which cannot be inverted: a text is the first of some usual ones that fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pkgutil import get_data
from typing import Any, Final

import orjson

from specmux_converters.document import Document
from specmux_converters.json_values import array, mapping, objects, texts
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.references import schemas_of
from specmux_converters.resources import GroupVersionKind
from specmux_converters.yaml import to_yaml
from specmux_tools.explanation.layers import (
    Layers,
    Schema,
    components_in,
    element_of,
    layers_of,
    properties_of,
    required_of,
    said_by,
)
from specmux_tools.unions import Member, Union, union_text, unions_of

MOST_LEVELS: Final = 32
MOST_LINES: Final = 5000
_SHOWN_VALUES: Final = 12
"""Most enum values in a comment."""

_ZEROS: Final = {"boolean": "false", "object": "{}", "array": "[]", "string": '""'}
_FORMATS: Final = {"date-time": '"1970-01-01T00:00:00Z"', "date": '"1970-01-01"', "duration": '"0s"'}
"""Formats that reject the empty string, with a valid value."""
_URLS: Final = frozenset(("uri", "url"))
NOTHING_GIVEN: Final[Mapping[str, Any]] = {}
_TEXTS: Final = (
    *("example", "example.com", "https://example.com", "Example", "1h", "1", "100m", "1Gi", "v1.0.0"),
    *("192.0.2.0/24", "192.0.2.1", "/example", "example.com/example", "example/example", "10-20", "0.0.0"),
    *("example:1", "arn:aws:iam::000000000000:role/example", "00000000-0000-0000-0000-000000000000"),
)
"""Texts of an example for a required string: the first that fits."""
_MICRO_TIME: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
"""Also of the format date-time, but Go accepts exactly six decimals of a second."""


def skeleton(document: Document, kind: GroupVersionKind, schema: Schema) -> str:
    """The YAML to fill in. ``schema`` is the kind's own."""
    return _manifest(document, kind, schema, NOTHING_GIVEN, ())


def example(document: Document, kind: GroupVersionKind, schema: Schema) -> str:
    """The YAML with values. ``schema`` is the kind's own."""
    own = example_objects().get(f"{kind.group} {kind.kind}".lstrip(), NOTHING_GIVEN)
    return _manifest(document, kind, schema, own, _TEXTS)


@cache
def example_objects() -> Mapping[str, Mapping[str, Any]]:
    """Fields to write and their values, by group and kind ("apps Deployment"), or by the kind alone in the
    core group, for any version. The signing request there is for CN=jane, with a discarded key. Fields that a
    version lacks are left out."""
    found: dict[str, Any] = orjson.loads(get_data(__package__, "example_objects.json") or b"")
    return found


def _manifest(
    document: Document,
    kind: GroupVersionKind,
    schema: Schema,
    given: Mapping[str, Any],
    texts: tuple[str, ...],
) -> str:
    writer = _Writer(document, kind, iter(range(MOST_LINES)), texts)
    return "\n".join(writer.object(layers_of(schemas_of(document), schema), 0, frozenset(), given)) + "\n"


@dataclass(frozen=True, slots=True)
class _Writer:
    document: Document
    kind: GroupVersionKind
    left: Iterator[int]
    """One item per field that may still be written: nested components may fan out without end."""
    texts: tuple[str, ...]
    """Texts for an example; empty for a skeleton."""

    def object(
        self, layers: Layers, level: int, above: frozenset[str], given: Mapping[str, Any] = NOTHING_GIVEN
    ) -> Iterator[str]:
        """The lines of an object's fields; empty if it requires none."""
        required = required_of(layers)
        properties = properties_of(layers)
        unions = unions_of(said_by(layers), next(components_in(layers), ""))
        alternatives = _alternatives(layers) or _choice(unions)
        wanted = {*required, "spec", *(alternatives[:1]), *given}
        if level == 0:
            wanted |= {"apiVersion", "kind", "metadata"}
        selected = {
            union.discriminator: self.select_member(union, properties.get(union.discriminator, {}))
            for union in unions
            if union.discriminator in wanted
        }
        wanted |= {member.field for member in selected.values() if not (member is None or member.is_optional)}
        for name in sorted(wanted & properties.keys(), key=lambda name: (_HEAD.get(name, 3), name)):
            notes = ["required"] if name in required and not self.texts else []
            if name in alternatives:
                notes.append(f"one of {', '.join(alternatives)}")
            notes += [union_text(union) for union in unions if union.discriminator == name]
            schema, member = properties[name], selected.get(name)
            if member is not None:
                schema = {**schema, "default": member.value}
            if name in given and not (isinstance(given[name], dict) and self.has_fields(schema)):
                yield from _given_lines(name, self.keep_known_fields(given[name], schema), level)
            else:
                yield from self.field(name, schema, level, notes, above, given.get(name))

    def select_member(self, union: Union, schema: Schema) -> Member | None:
        """The member for the discriminator's default or first value; the first member if it has neither."""
        said = said_by(layers_of(schemas_of(self.document), schema))
        value = said.get("default") or next(iter(array(said.get("enum"))), None)
        return union.members[0] if value is None else union.member(value)

    def field(
        self,
        name: str,
        schema: Schema,
        level: int,
        notes: list[str],
        above: frozenset[str],
        given: Mapping[str, Any] | None,
    ) -> Iterator[str]:
        if next(self.left, None) is None:
            return
        pad = "  " * level
        layers = layers_of(schemas_of(self.document), schema)
        said = said_by(layers)
        element = said_by(element_of(schemas_of(self.document), layers) or ({},))
        values = said.get("enum") or element.get("enum")
        if isinstance(values, list) and values:
            more = ", …" if len(values) > _SHOWN_VALUES else ""
            notes = [*notes, f"one of {', '.join(map(_scalar, values[:_SHOWN_VALUES]))}{more}"]
        comment = f"  # {'; '.join(notes)}".replace("\n", " ") if notes else ""
        head = f"{pad}{_scalar(name)}:"
        if level == 0 and name in ("apiVersion", "kind", "metadata"):
            yield from self.head(name, comment, layers, given)
            return
        inner = list(self.value_lines(layers, said, level, above, given or {}))
        if inner:
            yield f"{head}{comment}"
            yield from inner
        else:
            is_micro = _MICRO_TIME in components_in(layers)
            value = '"1970-01-01T00:00:00.000000Z"' if is_micro else self.value(said, element)
            yield f"{head} {value}{comment}"

    def has_fields(self, schema: Schema) -> bool:
        return bool(properties_of(layers_of(schemas_of(self.document), schema)))

    def keep_known_fields(self, value: Any, schema: Schema) -> Any:
        """A given value without fields that this version of the kind lacks."""
        layers = layers_of(schemas_of(self.document), schema)
        if isinstance(value, list):
            items = mapping(said_by(layers).get("items"))
            return [self.keep_known_fields(each, items) for each in value]
        properties = properties_of(layers)
        if not isinstance(value, dict) or not properties:
            return value
        kept = {name: each for name, each in value.items() if name in properties}
        return {name: self.keep_known_fields(each, properties[name]) for name, each in kept.items()}

    def head(self, name: str, comment: str, layers: Layers, given: Mapping[str, Any] | None) -> Iterator[str]:
        """The first lines of every object. The metadata of a list has no name."""
        if name == "metadata":
            properties = properties_of(layers)
            has_name = "name" in properties or not properties
            named = {"name": self.texts[0] if self.texts else ""} if given is None else given
            yield from _given_lines("metadata", dict(named) if has_name else {}, 0, comment)
            return
        value = self.kind.kind if name == "kind" else self.kind.api_version
        yield f"{name}: {_scalar(value)}{comment}"

    def value_lines(
        self, layers: Layers, said: Schema, level: int, above: frozenset[str], given: Mapping[str, Any]
    ) -> Iterator[str]:
        """The lines below a field's name; empty if its value is on the same line."""
        within = frozenset(components_in(layers))
        if said.get("default") not in (None, {}, []) or level >= MOST_LEVELS or within & above:
            return
        if properties_of(layers):
            yield from self.object(layers, level + 1, above | within, given)
            return
        if said.get("type") == "array" and isinstance(said.get("items"), dict):
            element = layers_of(schemas_of(self.document), said["items"])
            lines = list(self.object(element, level + 1, above | within))
            if lines:
                pad = "  " * level
                yield f"{pad}- {lines[0].lstrip()}"
                yield from (lines[1:])

    def value(self, said: Schema, element: Schema) -> str:
        """The text after a field's name."""
        if "default" in said:
            return _scalar(said["default"])
        if said.get("enum"):
            return _scalar(said["enum"][0])
        if said.get("type") == "array" and said.get("minItems"):
            return f"[{self.value(element, {})}]"
        if self.texts and said.get("format") == "byte":
            return '"ZXhhbXBsZQ=="'
        if self.texts and said.get("type") == "string" and said.get("format") not in _FORMATS:
            return _scalar(next((text for text in self.texts if _fits(said, text)), self.texts[0]))
        return _zero(said)


def _given_lines(name: str, value: Any, level: int, comment: str = "") -> Iterator[str]:
    lines = to_yaml({name: value}).decode().splitlines()
    lines[0] += comment
    yield from ("  " * level + line for line in lines)


def _fits(said: Schema, text: str) -> bool:
    """A pattern that cannot be decided counts as matched."""
    least, most, pattern = said.get("minLength"), said.get("maxLength"), said.get("pattern")
    if (isinstance(least, int) and len(text) < least) or (isinstance(most, int) and len(text) > most):
        return False
    if said.get("format") in _URLS and "://" not in text:
        return False
    if not isinstance(pattern, str):
        return True
    from specmux_converters.go.regexp import Pattern, UndecidedMatch  # explain starts without it

    try:
        return Pattern(pattern).matches(text)
    except UndecidedMatch:
        return True


_HEAD: Final = {"apiVersion": 0, "kind": 1, "metadata": 2}


def _zero(said: Schema) -> str:
    kind = said.get("type")
    if said.get("x-kubernetes-int-or-string") or kind in ("integer", "number"):
        least = said.get("minimum")
        return _scalar(least) if isinstance(least, int | float) and least > 0 else "0"
    if kind is None and said.get("properties") is None:
        # Of any type: quantities and what is either a number or a text take a number.
        return "0" if said.get("oneOf") or said.get("anyOf") else "{}"
    if kind == "string":
        return _FORMATS.get(str(said.get("format")), '""')
    return _ZEROS.get(str(kind), "{}")


def _alternatives(layers: Layers) -> list[str]:
    """The fields of which one is required, by the branches of ``oneOf`` or ``anyOf``."""
    for keyword in ("oneOf", "anyOf"):
        for layer in layers:
            branches = array(layer.get(keyword))
            names = [each["required"][0] for each in objects(branches) if array(each.get("required"))]
            if names and len(names) == len(branches):
                return [*dict.fromkeys(texts(names))]
    return []


def _choice(unions: Sequence[Union]) -> list[str]:
    """The fields of the first union that requires one of them."""
    needed = (union for union in unions if union.discriminator is None and not union.takes_none)
    return next(([member.field for member in union.members] for union in needed), [])


def _scalar(value: Any) -> str:
    """A value on one line; strings are quoted so that every YAML reader takes them for strings."""
    if isinstance(value, str):
        # Dumped as a mapping's line, so that libyaml neither folds it nor ends the document.
        text = to_yaml({"a": value}).decode()[3:].rstrip("\n")
        return text if "\n" not in text else orjson.dumps(value).decode()
    return orjson.dumps(value).decode()
