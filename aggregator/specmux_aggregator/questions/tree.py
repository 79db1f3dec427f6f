"""A tree of fields as nested ``details``: complete and usable without a script.

A link to a field's id opens all that stands above it; that is the browser's own work. No link stands in a
``summary``, which is a button already; the script puts one below it when it is opened, for written into each
field it is an eighth of the largest page.
"""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import escape

from specmux_aggregator.questions.prose import linked, prose
from specmux_schemas.explanation.text import notes_on
from specmux_schemas.explanation.tree import Field

_TITLES = {
    "DEPRECATED": "Deprecated",
    "DEFAULT": "Default",
    "ENUM": "One of",
    "LIMITS": "Limits",
    "FORMAT": "Format",
    "LIST": "List",
    "UNION": "Union",
    "RULES": "Rules",
    "NULLABLE": "Nullable",
    "PRESERVES UNKNOWN": "Keeps unknown fields",
}


def tree_html(field: Field) -> str:
    """The fields below ``field``."""
    return "".join(part for each in field.fields for part in _field(each, ""))


def _field(field: Field, above: str) -> Iterator[str]:
    path = f"{above}.{field.name}" if above else field.name
    name, identity = escape(field.name), escape(path)
    kind = " class=k" if field.fields else ""
    required = " <b>required</b>" if field.is_required else ""
    deprecated = " <s>deprecated</s>" if field.details.deprecated else ""
    yield (
        f'<details{kind} id="{identity}"><summary><code>{name}</code> <i>{escape(field.type)}</i>'
        f"{required}{deprecated}</summary>"
    )
    yield prose(field.description)
    for label, lines in notes_on(field.details):
        yield _note(label, list(lines))
    for each in field.fields:
        yield from _field(each, path)
    if field.has_more:
        yield "<p class=m>It has more fields: it lies within itself, or too deep to be shown here.</p>"
    yield "</details>"


def _note(label: str, lines: list[str]) -> str:
    title = _TITLES.get(label, label)
    if label == "DEPRECATED":
        return f"<p class=w>{linked(lines[0]) if lines[0] != 'yes' else title}</p>"
    if lines == ["true"]:
        return f"<p class=x>{title}</p>"
    return f"<p class=x>{title} " + " ".join(f"<code>{escape(line)}</code>" for line in lines) + "</p>"
