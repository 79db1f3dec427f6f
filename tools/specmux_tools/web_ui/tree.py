"""A tree of fields: complete and usable without a script.

A field that has more to show than fits beside its name is a ``details``; a link to its id opens all that
stands above it, which is the browser's own work. No link stands in a ``summary``, which is a button already:
the link to a field's type stands before it, and floats. A leaf without more is a ``div``, which costs a
browser a third of a ``details``. Fields that stand in the tree already, as those of a component do which has
many users, are links to them there, each with the id of its own place; a script puts copies in their stead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote

from markupsafe import Markup, escape

from specmux_tools.explanation.text import notes_on
from specmux_tools.explanation.tree import Field
from specmux_tools.web_ui.page_frame import link_text, mark_code, prose, split_description

_TITLES: Final = {
    "LIMITS": "Limits",
    "LIST": "List",
    "UNION": "Union",
    "RULES": "Rules",
    "NULLABLE": "Nullable",
    "PRESERVES UNKNOWN": "Keeps unknown fields",
}
"""Labels of the notes below a field's name; format, default, enum and deprecation are marks beside it."""
_OPEN: Final = frozenset(("spec",))
"""The fields of a kind that stand open."""
_DEFAULT_MOST: Final = 60
"""Characters of a default."""
_ENUM_MOST: Final = 24
"""Values of an enum."""
_REPEATED_LEAST: Final = 6
"""Fields below a field from which they are links where they are repeated."""

_Places = dict[int, str]
"""Paths below which fields stand in the tree, by their identity: a component has the same everywhere."""


def tree_html(field: Field, *, types: str = "") -> str:
    """The fields below ``field``. ``types``: where the pages of components are."""
    places: _Places = {}
    return "".join(part for each in field.fields for part in _field(each, "", types, places))


def _field(field: Field, above: str, types: str, places: _Places) -> Iterator[str]:
    path = f"{above}.{field.name}" if above else field.name
    first, rest = split_description(field.description, is_whole=not field.fields)
    notes = dict(notes_on(field.details))
    head = f"<code>{escape(field.name)}</code>{''.join(_marks(field, notes))}"
    if field.component:
        type_ = f'<a href="{types}{quote(field.component)}">{escape(field.type)}</a>'
    else:
        type_ = f"<i>{escape(field.type)}</i>"
    identity = escape(path)
    if not (field.fields or rest or field.has_more):
        yield f'<div id="{identity}">{type_}{head}'
        yield f"<p>{link_text(first)}</p>" if first else ""
        yield from _notes(notes)
        yield "</div>"
        return
    place = places.setdefault(id(field.fields), path)
    is_repeated = place != path and field.size > _REPEATED_LEAST
    kind = " class=k" if field.fields else ""
    opened = " open" if not above and field.name in _OPEN else ""
    same = f' data-same="{escape(place)}"' if is_repeated else ""
    before, within = (type_, "") if field.component else ("", type_)
    yield f'{before}<details{kind} id="{identity}"{same}{opened}><summary>{within}{head}'
    yield f"<span>{mark_code(first)}</span></summary>" if first else "</summary>"
    yield prose(first) if "://" in first else ""
    yield prose(rest)
    yield from _notes(notes)
    if is_repeated:
        yield f'<p class=m>Fields as in <a href="#{_fragment(place)}">{escape(place)}</a>:'
        yield from _links(field, path, place, places)
        yield "</p>"
    else:
        for each in field.fields:
            yield from _field(each, path, types, places)
    if field.has_more:
        yield "<p class=m>More fields: it contains itself, or is too deep to show here.</p>"
    yield "</details>"


def _links(field: Field, path: str, place: str, places: _Places) -> Iterator[str]:
    """From each field below one, by its id, to where it stands."""
    for each in field.fields:
        own, other = f"{path}.{each.name}", f"{place}.{each.name}"
        yield f' <a id="{escape(own)}" href="#{_fragment(other)}">{escape(each.name)}</a>'
        yield from _links(each, own, places.get(id(each.fields), other), places)


def _fragment(path: str) -> str:
    return quote(path, safe="")


def _marks(field: Field, notes: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Quiet words beside a name."""
    if field.is_required:
        yield " <b>required</b>"
    if field.details.deprecated:
        yield " <s>deprecated</s>"
    for form in notes.get("FORMAT", ()):
        yield f" <small>{escape(form)}</small>"
    for default in notes.get("DEFAULT", ()):
        yield f" <small>default {escape(_shorten(default))}</small>"
    values = list(notes.get("ENUM", ()))
    if values:
        more = " | …" if len(values) > _ENUM_MOST else ""
        yield f" <small>{escape(' | '.join(values[:_ENUM_MOST]))}{more}</small>"


def marks_text(field: Field) -> str:
    """The same without markup, to stand behind a type."""
    marks = (Markup(mark).striptags() for mark in _marks(field, dict(notes_on(field.details))))  # noqa: S704
    return "".join(f", {mark}" for mark in marks)


def _notes(notes: Mapping[str, Iterable[str]]) -> Iterator[str]:
    for label, title in _TITLES.items():
        lines = list(notes.get(label, ()))
        if lines == ["true"]:
            yield f"<p class=x>{title}</p>"
        elif lines:
            yield f"<p class=x>{title} {' '.join(f'<code>{escape(line)}</code>' for line in lines)}</p>"


def _shorten(text: str) -> str:
    return text if len(text) <= _DEFAULT_MOST else f"{text[:_DEFAULT_MOST]}…"
