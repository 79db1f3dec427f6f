"""The text of ``specmux explain``: kubectl's, byte for byte, or the same with additional lines.

The rules are those of ``pkg/explain/v2/templates/plaintext.tmpl`` of k8s.io/kubectl 0.37, with the truth
values of Go's templates: an empty map or list is false. Added are DEFAULT, ENUM (also of elements), LIMITS,
FORMAT, LIST, UNION, RULES, NULLABLE, PRESERVES UNKNOWN, DEPRECATED, ALSO IN and MEDIA TYPES; without these
lines the text equals kubectl's, but for int-or-string.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote

from specmux_converters.document import Document
from specmux_converters.json_values import mapping, objects, within
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern
from specmux_converters.printing import printable_lines
from specmux_converters.references import schemas_of
from specmux_converters.resources import GroupVersionKind
from specmux_tools.errors import UnknownField, UnknownKind
from specmux_tools.explanation.field_details import Details, details_of, media_type_lines
from specmux_tools.explanation.layers import Schema, components_in, innermost, layers_of, said_by
from specmux_tools.unions import union_text

_NONE: Final[Schema] = {}
_SHORT_ENUM: Final = 4
"""Values of an enum shown in a list."""
# Lines break only at white space, a no-break space belongs to its word, and a word longer than the width
# stays whole.

_TOKEN: Final = pattern(
    "(\n)|([\t\v\f\r \x85\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+)|"
    "([^\n\t\v\f\r \x85\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+)"
)
"""A line break, white space by Go's ``unicode.IsSpace``, or a word."""
Note = tuple[str, Sequence[str]]
"""A label and the lines under it."""


def wrap_text(text: str, width: int) -> str:
    """``text`` with additional line breaks; existing ones are kept."""
    written: list[str] = []
    column = 0
    space = word = ""
    for match in _TOKEN.finditer(text):
        newline, blank, letters = match.groups()
        if letters is not None:
            word = letters
            # The first prefix of the word that exceeds the width counts.
            if width > 1 and column + len(space) + min(len(word), width - 1) > width:
                written.append("\n")
                column, space = 0, ""
            continue
        if word:
            written += (space, word)
            column += len(space) + len(word)
            space = word = ""
        if newline is None:
            space = blank
            continue
        if space and column + len(space) <= width:
            written.append(space)
        written.append("\n")
        column, space = 0, ""
    if word or column + len(space) <= width:
        written += (space, word)
    return "".join(written)


def plaintext(
    document: Document,
    kind: GroupVersionKind,
    path: Sequence[str],
    *,
    recursive: bool = False,
    max_depth: int = 0,
) -> str:
    """kubectl's output for a field of a kind. ``max_depth``: levels of fields in recursive output; 0 for all.

    Raises UnknownKind if the document does not describe the kind, UnknownField if it has no such field.
    """
    return _Printer(document, recursive, max_depth, has_notes=False).print_kind(kind, path)


def text(
    document: Document,
    kind: GroupVersionKind,
    path: Sequence[str],
    *,
    recursive: bool = False,
    max_depth: int = 0,
    also_in: Sequence[str] = (),
) -> str:
    """Raises as ``plaintext``. ``also_in``: group-versions whose kind of that name has the field too."""
    written = _Printer(document, recursive, max_depth, has_notes=True).print_kind(kind, path)
    if also_in:
        written = f"{written[:-1]}ALSO IN:\n    {', '.join(also_in)}\n\n"
    lines = [] if path else [f"    {line}\n" for line in media_type_lines(document, kind)]
    return f"{written[:-1]}MEDIA TYPES:\n{''.join(lines)}\n" if lines else written


def type_of(document: Document, schema: Schema, *, as_kubectl: bool = False) -> str:
    """A type in kubectl's form: ``string``, ``[]Container``, ``map[string]Quantity``, ``Object``.

    For kubectl an integer or a string of a definition is an Object (kubernetes#130946)."""
    if not as_kubectl and schema.get("x-kubernetes-int-or-string") is True:
        return "int-or-string"
    items, values = within(schema, "items"), within(schema, "additionalProperties")
    if items:
        return f"[]{type_of(document, items, as_kubectl=as_kubectl)}"
    if values:
        return f"map[string]{type_of(document, values, as_kubectl=as_kubectl)}"
    match schema.get("allOf"):
        case [dict(only)] if only and not schema.get("properties"):
            return type_of(document, only, as_kubectl=as_kubectl)
    reference = schema.get("$ref")
    if not reference:
        name = schema.get("type")
        return "Object" if name == "object" else str(name or "Object")
    target = _target(document, reference)
    name = target.get("type")
    if name and name != "object":
        return str(name)
    return str(reference).rpartition("/")[2].rpartition(".")[2] or "Object"


@dataclass(frozen=True, slots=True)
class _Printer:
    document: Document
    recursive: bool
    max_depth: int
    has_notes: bool

    def print_kind(self, kind: GroupVersionKind, path: Sequence[str]) -> str:
        wanted = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        schemas = schemas_of(self.document)
        for name in sorted(schemas, key=str.encode):
            listed = mapping(schemas[name]).get("x-kubernetes-group-version-kind")
            if isinstance(listed, list) and wanted in listed:
                break
        else:
            raise UnknownKind(f"no schema of the document is of the kind {kind.kind}", name=kind.kind)
        text = self.output(schemas[name], path, frozenset())
        if not text:
            raise UnknownField(f'field "{path[-1]}" does not exist', name=path[-1])
        group = f"GROUP:      {kind.group}\n" if kind.group else ""
        return printable_lines(f"{group}KIND:       {kind.kind}\nVERSION:    {kind.version}\n\n{text}\n")

    def type_of(self, schema: Schema) -> str:
        return type_of(self.document, schema, as_kubectl=not self.has_notes)

    def notes(self, schema: Schema) -> Iterable[Note]:
        """Notes on a field in addition to kubectl's output."""
        if not self.has_notes:
            return ()
        schemas = schemas_of(self.document)
        layers = layers_of(schemas, schema)
        inner = innermost(schemas, layers)
        component = next(components_in(inner), "")
        details = details_of(said_by(layers), {} if inner is layers else said_by(inner), component)
        # kubectl prints an enum in the field's own schema.
        return notes_on(details, has_enum=not schema.get("enum"))

    def output(self, schema: Schema, path: Sequence[str], seen: frozenset[str]) -> str:
        """The field at the end of ``path``; "" if there is none."""
        reference = str(schema.get("$ref") or "")
        found = _target(self.document, reference) or schema
        if not path:
            described = "".join(self.descriptions(found)) or "<empty>"
            fields = "".join(self.field_list(found, 1, frozenset()))
            head = f"DESCRIPTION:\n{_indent_text(wrap_text(described, 76), 4)}\n"
            head += self.external_docs(found, 0, 4)
            return f"{head}FIELDS:\n{fields}" if fields else head
        if reference and reference in seen:
            return ""
        field = within(within(found, "properties"), path[0])
        if field:
            rest = self.output(field, path[1:], frozenset())
            if len(path) > 1:
                return rest
            kind = self.type_of(field)
            values = field.get("enum")
            enum = "\n    ".join(("ENUM:", *map(value_text, values))) if values else ""
            notes = "".join("\n    ".join((f"{label}:", *lines)) + "\n" for label, lines in self.notes(field))
            return f"FIELD: {path[0]} <{kind}>\n{enum}\n{notes}\n{rest}"
        inner = within(found, "items") or within(found, "additionalProperties")
        if inner:
            return self.output(inner, path, seen | {reference})
        parts = (self.output(part, path, seen | {reference}) for part in objects(found.get("allOf")))
        return next(filter(None, parts), "")

    def descriptions(self, schema: Schema) -> Iterator[str]:
        """The descriptions of a schema and of its parts."""
        found = _target(self.document, schema.get("$ref")) or schema
        if found.get("description"):
            yield f"{found['description']}\n"
        for part in _inner(found):
            yield from self.descriptions(part)

    def field_list(self, schema: Schema, level: int, seen: frozenset[str]) -> Iterator[str]:
        reference = str(schema.get("$ref") or "")
        if reference and reference in seen:
            return
        found = _target(self.document, reference) or schema
        seen |= {reference}
        properties = within(found, "properties")
        for name in sorted(properties, key=str.encode):
            field = properties[name]
            yield self.field(name, field, level, is_required=name in (found.get("required") or ()))
            if self.recursive and (not self.max_depth or level < self.max_depth):
                yield from self.field_list(field, level + 1, seen)
        for part in _inner(found):
            yield from self.field_list(part, level, seen)

    def field(self, name: str, schema: Schema, level: int, *, is_required: bool) -> str:
        pad = "  " * level
        required = " -required-" if is_required else ""
        line = f"{pad}{name}\t<{self.type_of(schema)}>{required}{_short_enum(schema, pad)}\n"
        line += "".join(f"{pad}{label.lower()}: {'; '.join(lines)}\n" for label, lines in self.notes(schema))
        if self.recursive:
            return line
        described = wrap_text(schema.get("description") or "<no description>", 78 - len(pad))
        outside = self.external_docs(schema, len(pad) + 2, len(pad) + 4)
        return f"{line}{_indent_text(described, len(pad) + 2)}\n{outside}\n"

    def external_docs(self, schema: Schema, head: int, inner: int) -> str:
        """After an empty line."""
        said = within(schema, "externalDocs")
        if not said:
            return ""
        lines = ["", _indent_text("EXTERNAL DOCS:", head)]
        if said.get("description"):
            lines.append(_indent_text(wrap_text(str(said["description"]), 80 - inner), inner))
        if said.get("url"):
            lines.append(_indent_text(f"URL: {said['url']}", inner))
        return "".join(f"{line}\n" for line in lines)


def _inner(schema: Schema) -> Iterator[Schema]:
    """Further sources of a schema's fields, in kubectl's order."""
    yield from objects(schema.get("allOf"))
    yield from filter(None, (within(schema, "items"), within(schema, "additionalProperties")))


def _target(document: Document, reference: Any) -> Schema:
    """The target of a reference within the document. As in kubectl, ``~1`` is not decoded."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return _NONE
    found: Schema = document
    for token in unquote(reference[1:]).split("/"):
        if token:
            found = within(found, token)
    return found


def _indent_text(text: str, amount: int) -> str:
    pad = " " * amount
    return pad + text.replace("\n", f"\n{pad}")


def _short_enum(schema: Schema, pad: str) -> str:
    values = schema.get("enum")
    if not values:
        return ""
    more = ", ...." if len(values) > _SHORT_ENUM else ""
    return f"\n{pad}enum: {', '.join(map(value_text, values[:_SHORT_ENUM]))}{more}"


def value_text(value: Any) -> str:
    """A value as printed by Go's templates, where every number is a float."""
    match value:
        case None:
            return "<no value>"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return _number(float(value))
    return str(value) or '""'


def _number(number: float) -> str:
    """The text of Go's ``%v``: the shortest digits, with an exponent below -4 and from 21 on."""
    if number == int(number) and abs(number) < 1e21:
        return str(int(number))
    text = repr(number)
    if "e" not in text and abs(number) < 1e-4:
        text = f"{number:e}"
    return text


def notes_on(details: Details, *, has_enum: bool = True) -> Iterator[Note]:
    """Notes in a fixed order."""
    if details.deprecated:
        yield "DEPRECATED", [details.deprecated]
    # In Kubernetes' documents every nested object has the default {}, which is of no interest.
    if details.default and details.default != "{}":
        yield "DEFAULT", [details.default]
    if has_enum and details.enum:
        yield "ENUM", [value_text(value) for value in details.enum]
    if details.limits:
        yield "LIMITS", [f"{name} {value_text(value)}" for name, value in details.limits]
    if details.format:
        yield "FORMAT", [details.format]
    if details.list_type:
        yield "LIST", [details.list_type]
    if details.unions:
        yield "UNION", list(map(union_text, details.unions))
    if details.rules:
        yield (
            "RULES",
            [f"{each.rule}  ({each.message})" if each.message else each.rule for each in details.rules],
        )
    if details.is_nullable:
        yield "NULLABLE", ["true"]
    if details.preserves_unknown:
        yield "PRESERVES UNKNOWN", ["true"]
