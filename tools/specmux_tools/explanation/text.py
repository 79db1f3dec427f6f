"""The output of ``specmux explain``: kubectl's text, with additional lines.

Added are DEFAULT, ENUM (also of elements), LIMITS, FORMAT, LIST, UNION, RULES, NULLABLE, PRESERVES UNKNOWN,
DEPRECATED, ALSO IN and MEDIA TYPES. Without these lines the text equals kubectl's, but for int-or-string.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specmux_converters.document import Document
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.references import schemas_of
from specmux_converters.resources import GroupVersionKind
from specmux_tools.explanation.field_details import Details, details_of, media_type_lines
from specmux_tools.explanation.layers import Schema, components_in, innermost, layers_of, said_by
from specmux_tools.explanation.plaintext import Note, of_kind, value_text
from specmux_tools.unions import union_text


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
    noting = _Noting(document)
    written = of_kind(document, kind, path, recursive=recursive, max_depth=max_depth, notes=noting)
    if also_in:
        written = f"{written[:-1]}ALSO IN:\n    {', '.join(also_in)}\n\n"
    lines = [] if path else [f"    {line}\n" for line in media_type_lines(document, kind)]
    return f"{written[:-1]}MEDIA TYPES:\n{''.join(lines)}\n" if lines else written


def notes_on(details: Details, *, enum: bool = True) -> Iterator[Note]:
    """Notes in a fixed order."""
    if details.deprecated:
        yield "DEPRECATED", [details.deprecated]
    # In Kubernetes' documents every nested object has the default {}, which is of no interest.
    if details.default and details.default != "{}":
        yield "DEFAULT", [details.default]
    if enum and details.enum:
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


@dataclass(frozen=True, slots=True)
class _Noting:
    document: Document

    def __call__(self, schema: Schema) -> list[Note]:
        schemas = schemas_of(self.document)
        layers = layers_of(schemas, schema)
        inner = innermost(schemas, layers)
        component = next(components_in(inner), "")
        details = details_of(said_by(layers), {} if inner is layers else said_by(inner), component)
        # kubectl prints an enum in the field's own schema.
        return list(notes_on(details, enum=not schema.get("enum")))
