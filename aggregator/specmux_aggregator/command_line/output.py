"""How a command prints what it found: text for people, JSON or YAML for programs.

``-o`` may stand before the subcommand or after it; the last one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeVar

import click

from specmux_aggregator.console import write_line

Output = Literal["text", "json", "yaml"]
Command = TypeVar("Command", bound=Callable[..., Any])

FORMATS: Final = ("text", "json", "yaml")
_KEY: Final = "specmux.output"


class WrittenPath(click.Path):
    """A folder or a file that a command writes; ``what``: "a folder". It cannot be standard output."""

    def __init__(self, what: str, **options: Any) -> None:
        super().__init__(**options)
        self.what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value) == "-":
            self.fail(f"- is standard output, and this writes {self.what}: name it", param, ctx)
        return super().convert(value, param, ctx)


def output_option(command: Command) -> Command:
    """For commands, which get ``output: Output``."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(FORMATS),
        callback=_choose,
        help="Output format.  [default: text]",
    )(command)


def document_format(command: Command) -> Command:
    """For commands whose output is a document: ``output`` is ``json`` or ``yaml``."""
    return click.option(
        "-o", "--output", type=click.Choice(("json", "yaml")), callback=_document,
        help="Output format.  [default: json]",
    )(command)  # fmt: skip


def format_option(*forms: str) -> Callable[[Command], Command]:
    """For commands with forms of their own, text among them, which get ``output: str``.

    ``--format`` is another name of it. A form that was asked for before the command has to be one of them.
    """

    def chosen(context: click.Context, _: click.Parameter, value: str | None) -> str:
        wanted = value or group_output(context)
        if wanted not in forms:
            raise click.UsageError(
                f"{context.info_name} cannot be printed as {wanted}, but as {', '.join(forms)}"
            )
        return wanted

    return click.option(
        "-o", "--output", "--format", "output", type=click.Choice(forms), callback=chosen,
        help="Output format.  [default: text]",
    )  # fmt: skip


def output_of_group(command: Command) -> Command:
    """For groups: what their commands print as, unless they say otherwise themselves."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(FORMATS),
        callback=_remember,
        expose_value=False,
        help="Output format of every command.  [default: text]",
    )(command)


def group_output(context: click.Context) -> Output:
    """The option given to the group, for commands with forms of their own."""
    chosen: Output = context.meta.get(_KEY, "text")
    return chosen


def show(output: Output, value: Any, lines: Iterable[str]) -> None:
    """``value`` for programs, or ``lines`` for people, on standard output."""
    match output:
        case "json":
            import orjson

            write_line(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
        case "yaml":
            from specmux_converters.yaml import to_yaml

            write_line(to_yaml(value).decode().rstrip("\n"))
        case "text":
            for line in lines:
                write_line(line)


def _choose(context: click.Context, _: click.Parameter, value: str | None) -> str:
    chosen: str = value or context.meta.get(_KEY, "text")
    return chosen


def _document(context: click.Context, _: click.Parameter, value: str | None) -> str:
    chosen: str = value or context.meta.get(_KEY, "json")
    return "json" if chosen == "text" else chosen


def _remember(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[_KEY] = value


def json_of_group(context: click.Context, _: click.Parameter, value: bool) -> None:
    """The callback of ``--json``, which is short for ``-o json``."""
    if value:
        context.meta[_KEY] = "json"
