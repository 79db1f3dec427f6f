"""``specmux search``: kinds and fields of a source, found by words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import Output, output_option, show
from specmux_aggregator.console import GAP, table, terminal_width, warn
from specmux_aggregator.exits import FOUND, report_errors
from specmux_tools.commands.explain import report_unknown
from specmux_tools.sources import (
    SourceOptions,
    note_missing_descriptions,
    open_documents,
    own_kinds_option,
    report_unread,
    source_options,
)

if TYPE_CHECKING:  # the types bring the converters with them, which --help does not need
    from specmux_tools.search_index.query import SchemaHit, SearchResult


DESCRIPTION_MAX: Final = 80
DESCRIPTION_MIN: Final = 20
"""Columns of a description; the column is omitted on a terminal with room for fewer."""


@click.command(
    epilog=examples(
        ("a field, by words of its name and path", "specmux search pod restart policy"),
        (
            "by its description, without a server",
            "specmux search terminate gracefully --directory documents/",
        ),
        ("for programs", "specmux search replicas --group apps -o json"),
    )
)
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--limit", metavar="N", type=click.IntRange(1, 200), default=20, show_default=True,
    help="Maximum number of rows.",
)  # fmt: skip
@click.option(
    "--offset", metavar="N", type=click.IntRange(0, 1000), default=0, help="Number of rows to skip."
)
@click.option("--group", metavar="GROUP", help='Only kinds of this API group; "" is the core group.')
@own_kinds_option
@output_option
@source_options
def search(
    words: tuple[str, ...], limit: int, offset: int, group: str | None, output: Output, source: SourceOptions
) -> None:
    """Search kinds and fields by words.

    Words match the beginnings of words, ignoring case: in names, parents of a field and descriptions. A field
    that many kinds have is one row.

    Exit codes: 0 found, 1 nothing found, 2 usage, 3 nothing to read, 4 no answer.
    """
    with report_errors(), report_unknown(), open_documents(source) as documents:
        from specmux_tools.search_index.query import found_json
        from specmux_tools.search_index.query import search as rows_for
        from specmux_tools.sources.search_index import SearchIndex

        note_missing_descriptions(documents.where, source)
        kept = SearchIndex(documents, source.directory_of_cache)
        index = kept.current()
        report_unread(kept.unread)
        found = rows_for(index, " ".join(words), limit=limit, offset=offset, group=group)
        groups: list[str] = []
        if not found.rows and group is not None:
            from specmux_converters.group_versions import split

            named = filter(None, map(split, documents.group_versions()))
            groups = sorted({each for each, _ in named})
    if found.is_partial:
        warn("a word is so frequent that not every place of it was looked at; add another")
    show(output, found_json(found), _lines(found))
    if not found.rows:
        if groups and group not in groups:
            warn(f'there is no group "{group}"; known: {", ".join(filter(None, groups))}')
        elif found.did_you_mean:
            warn(f"did you mean {found.did_you_mean}?")
        elif output == "text":
            warn("every word has to be the beginning of a word there: try fewer or shorter ones")
        raise click.exceptions.Exit(FOUND)


def _lines(found: SearchResult) -> list[str]:
    if not found.rows:
        return ["nothing found"]
    head, rows = ("FIELD", "TYPE", "API VERSION"), [_cells(row) for row in found.rows]
    lines = table(head, [row[:-1] for row in rows])
    width = terminal_width()
    room = DESCRIPTION_MAX if width is None else width - max(map(len, lines)) - len(GAP)
    if room >= DESCRIPTION_MIN:
        lines = table((*head, "DESCRIPTION"), [(*row[:-1], row[-1][:room]) for row in rows])
    more = found.total - len(found.rows)
    return [*lines, f"({more} more)"] if more > 0 else lines


def _cells(row: SchemaHit) -> tuple[str, ...]:
    from specmux_converters.printing import printable
    from specmux_tools.search_index.query import path_text

    version = row.kind.kind.api_version
    more = f" (+{row.also_in_count})" if row.also_in_count else ""
    cells = path_text(row), row.type, version + more, row.summary[:DESCRIPTION_MAX]
    return tuple(map(printable, cells))
