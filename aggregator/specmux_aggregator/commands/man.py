"""``specmux man``: the man pages, from the commands' own help; wheels have them too (hatch_build.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import WrittenPath
from specmux_aggregator.version import VERSION


@click.command(
    "man",
    epilog=examples(
        ("for this user: man specmux-get", "specmux man ~/.local/share/man/man1"),
        "specmux man man1/",
    ),
)
@click.argument("folder", type=WrittenPath("a folder", path_type=Path, file_okay=False))
@click.pass_context
def write_man(context: click.Context, folder: Path) -> None:
    """Write the man pages of all commands into a folder.

    An installed wheel brings them: "man specmux" finds them where specmux is on PATH. This is for other
    installations.
    """
    root = context.find_root().command
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, page in pages(root):
            (folder / f"{name}.1").write_text(page, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{folder}: {error.strerror or 'cannot be written'}") from error


def pages(root: click.Command) -> Iterator[tuple[str, str]]:
    """The name and the text (man(7)) of each page, the first of them ``specmux``."""
    yield from _pages(root, click.Context(root, info_name="specmux"), "specmux")


def _pages(command: click.Command, context: click.Context, name: str) -> Iterator[tuple[str, str]]:
    yield name, _page(command, context, name)
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            if inner is not None and not inner.hidden:
                below = click.Context(inner, info_name=each, parent=context)
                yield from _pages(inner, below, f"{name}-{each}")


def _page(command: click.Command, context: click.Context, name: str) -> str:
    first, *more = _paragraphs(command.help)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH "{name.upper()}" "1" "" "specmux {VERSION}" "specmux"',
        ".SH NAME",
        _text(f"{name} - {first.rstrip('.')}"),
        ".SH SYNOPSIS",
        f".B {context.command_path}",
        _text(usage),
    ]
    if more:
        lines.append(".SH DESCRIPTION")
        lines += [line for paragraph in more for line in (".PP", _text(paragraph))]
    options = [record for each in command.params if (record := each.get_help_record(context)) is not None]
    if options:
        lines.append(".SH OPTIONS")
        lines += [line for names, said in options for line in (".TP", f".B {_text(names)}", _text(said))]
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            if inner is not None and not inner.hidden:
                said = _text(inner.get_short_help_str(limit=200))
                lines += [".TP", f".BR {_text(f'{name}-{each}')} (1)", said]
    shown = (command.epilog or "").partition("Examples:")[2].strip("\n")
    if shown:
        lines += [
            ".SH EXAMPLES",
            ".nf",
            *(_text(line.removeprefix("  ")) for line in shown.splitlines()),
            ".fi",
        ]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str | None) -> list[str]:
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", (text or "").strip())]


def _text(text: str) -> str:
    """No character of it a request or an escape of roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
