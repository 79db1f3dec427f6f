"""``specmux explain``: a field of a kind, from any source of documents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from specmux_aggregator.command_line.common_options import release_option
from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import format_option, show
from specmux_aggregator.console import warn, write_error, write_line
from specmux_aggregator.exits import FOUND, report_errors
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern
from specmux_tools.errors import SchemasError, UnknownField, UnknownName
from specmux_tools.sources import (
    SourceOptions,
    note_missing_descriptions,
    open_documents,
    report_unread,
    source_options,
)
from specmux_tools.sources.completion import complete_kinds
from specmux_tools.sources.options import KUBERNETES

if TYPE_CHECKING:  # the types bring the converters with them, which --help does not need
    from specmux_tools.explanation.field_path import Step
    from specmux_tools.explanation.kind_names import KindName, KindReference
    from specmux_tools.sources.source import LoadedDocuments, Source

Form = Literal["plaintext", "text", "json", "yaml", "skeleton"]

_VERSION: Final = pattern(r"([a-z0-9.-]+/)?v[0-9]+((alpha|beta)[0-9]+)?")

_ELSEWHERE: Final = (
    "; what is not Kubernetes' own is described by its CustomResourceDefinition or its server: "
    "give --directory DIR, --file FILE or --server URL"
)

FORMS: Final = ("text", "plaintext", "json", "yaml", "skeleton")


@dataclass(frozen=True, slots=True)
class FieldView:
    """The form in which a field is shown."""

    form: Form
    is_recursive: bool
    depth: int | None


@click.command(
    epilog=examples(
        ("a field of the current context's cluster", "specmux explain deploy.spec.strategy"),
        ("as kubectl prints it", "specmux explain pods -o plaintext --recursive"),
        ("a manifest to fill in", "specmux explain cronjob -o skeleton"),
        ("without a server", "specmux explain hpa.spec --directory documents/"),
    )
)
@click.argument("words", metavar="TYPE[.FIELD...]", nargs=-1, required=True, shell_complete=complete_kinds)
@click.option(
    "--api-version", metavar="GROUP/VERSION", default="", help="Explain the kind of this group-version."
)
@click.option("--all-versions", is_flag=True, help="Explain the kind in each of its versions.")
@click.option("-R", "--recursive", is_flag=True, help="Print all fields below, one line each.")
@click.option(
    "--max-depth", metavar="N", type=click.IntRange(1, 64),
    help="Levels of fields in JSON and YAML; with -R in text.",
)  # fmt: skip
@release_option("Without another source: the kinds of this release of Kubernetes.")
@format_option(*FORMS)
@source_options
def explain(
    words: tuple[str, ...],
    api_version: str,
    all_versions: bool,
    recursive: bool,
    max_depth: int | None,
    release: str | None,
    output: Form,
    source: SourceOptions,
) -> None:
    """Explain a kind, or one of its fields.

    TYPE is a kind, plural, singular or short name. List elements may be given: spec.containers[0].image.

    \b
    text       kubectl's text, with defaults, enums, limits, lists, rules
    plaintext  kubectl's text, byte for byte
    skeleton   a manifest with the required fields

    Exit codes: 0 ok, 1 no such kind or field, 2 usage, 3 nothing to read, 4 no answer.
    """
    from specmux_tools.explanation.field_path import parse
    from specmux_tools.explanation.kind_names import find_kind
    from specmux_tools.sources.kind_lookup import kinds_of_source, versions_of

    if max_depth and not recursive and output in ("text", "plaintext"):
        raise click.UsageError(f"--max-depth requires --recursive with -o {output}")
    subject, api_version = _subject(words, api_version)
    source = source.or_release(release)
    with report_errors(), open_documents(source) as documents, report_unknown(documents.where):
        kinds = kinds_of_source(documents, is_ordered=not source.is_local)
        asked = find_kind(kinds, parse(subject), version=api_version)
        chosen = versions_of(asked) if all_versions else [asked.chosen]
        if not all_versions and asked.others:
            named = ", ".join(_title(each) for each in asked.others[:5])
            from specmux_converters.printing import printable_lines  # only where there is more

            said = f"{_title(asked.chosen)} is explained; there is also {named}"
            click.echo(printable_lines(said), err=True)
        if output != "skeleton":
            note_missing_descriptions(documents.where, source)
        wanted = FieldView(output, recursive, max_depth)
        _show(documents, chosen, asked, wanted)


def _subject(words: tuple[str, ...], api_version: str) -> tuple[str, str]:
    """Type and version as manifests and models write them, too: ``apps/v1 Deployment``, ``v1/Pod``."""
    words = tuple(part for word in words for part in word.split())
    if len(words) == 2 and not api_version and _VERSION.fullmatch(words[0]):
        words, api_version = words[1:], words[0]
    if len(words) > 1:
        raise click.UsageError(
            f"unexpected extra argument {words[1]}: the path of a field is one word, {'.'.join(words)}"
        )
    subject = words[0]
    if subject.startswith((".", "$")):
        field = subject.lstrip(".$") or "spec"
        raise click.UsageError(f"a type comes first, such as pods.{field}")
    version, slash, kind = subject.rpartition("/")
    if slash and not api_version and _VERSION.fullmatch(version):
        return kind, version
    return subject, api_version


@contextmanager
def report_unknown(where: str = "") -> Iterator[None]:
    """An unknown kind or field ends the command with the names that are like it. ``where``: the source."""
    try:
        yield
    except UnknownName as error:
        if error.similar:
            step = f"; did you mean {' or '.join(error.similar)}?"
        elif isinstance(error, UnknownField):
            step = "; without it, the fields are listed"
        else:
            step = _ELSEWHERE if where.startswith(KUBERNETES) else ""
        write_error(f"{error}{step}")
        raise click.exceptions.Exit(FOUND) from error
    except SchemasError as error:
        raise click.UsageError(str(error)) from error


def _show(source: Source, chosen: list[KindName], asked: KindReference, wanted: FieldView) -> None:
    from specmux_tools.sources.kind_lookup import versions_of

    # Only text says in which other versions a field is, and only that needs their documents.
    same = versions_of(asked) if wanted.form == "text" else chosen
    # Of a kind as a whole, the operations are told, too.
    schemas_only = bool(asked.steps) or wanted.form in ("plaintext", "skeleton")
    loaded = source.load({each.group_version for each in (*chosen, *same)}, schemas_only=schemas_only)
    report_unread(loaded.unread)
    explained = []
    for number, each in enumerate(chosen):
        if each.group_version not in loaded.documents.documents:
            warn(f"{_title(each)}: its document could not be read")
            continue
        also = [other for other in same if other is not each]
        try:
            explained.append(_explain_field(loaded, each, also, asked.steps, wanted))
        except UnknownField as error:
            if number == 0:
                raise
            warn(f"{_title(each)}: {error}")
    if wanted.form in ("json", "yaml"):
        value = explained[0] if len(chosen) == 1 and explained else explained
        show(wanted.form, value, ())
        return
    separator = "---\n" if wanted.form == "skeleton" else ""
    write_line(separator.join(map(str, explained)).removesuffix("\n"))


def _explain_field(
    loaded: LoadedDocuments, name: KindName, also: list[KindName], steps: tuple[Step, ...], wanted: FieldView
) -> Any:
    """Text, or a value for JSON. Raises UnknownField, UnknownKind."""
    from specmux_tools.explanation.tree import MOST_DEPTH, as_json, find, tree_of
    from specmux_tools.sources.kind_lookup import schema_of

    found = schema_of(loaded, name)
    place = find(found.document, found.schema, steps)
    if wanted.form == "skeleton":
        from specmux_tools.explanation.skeleton import skeleton

        return skeleton(found.document, name.kind, found.schema)
    if wanted.form in ("text", "plaintext"):
        from specmux_tools.explanation.text import plaintext, text

        write = plaintext
        if wanted.form == "text":
            write = partial(
                text, also_in=[each.kind.api_version for each in also if _has(loaded, each, steps)]
            )
        depth = wanted.depth or 0  # all
        return write(found.document, name.kind, place.names, recursive=wanted.is_recursive, max_depth=depth)
    depth = wanted.depth or (MOST_DEPTH if wanted.is_recursive else 1)
    return as_json(found.document, name.kind, place.names, tree_of(found.document, place, depth=depth))


def _has(loaded: LoadedDocuments, name: KindName, steps: tuple[Step, ...]) -> bool:
    from specmux_tools.explanation.tree import find
    from specmux_tools.sources.kind_lookup import schema_of

    try:
        found = schema_of(loaded, name)
        find(found.document, found.schema, steps)
    except UnknownName:
        return False
    return True


def _title(name: KindName) -> str:
    return f"{name.kind.kind} of {name.kind.api_version}"
