"""The list of commands: what ``specmux --help`` and completion show without importing a single one.

A command's module is imported when the command is run or asked for its own help.
"""

from __future__ import annotations

import errno
import gc
import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from specmux_aggregator.command_line.common_options import habit, with_common_options
from specmux_aggregator.console import forget_standard_output
from specmux_aggregator.exits import UNREADABLE, UnreadableInput
from specmux_converters.lazy.dataclasses import dataclass

if TYPE_CHECKING:  # a command that lists nothing does without it
    from click.shell_completion import CompletionItem

_WORDS: Final = "specmux.words"
_UNWRITABLE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command before it is imported."""

    target: str
    """``module:attribute``"""
    summary: str
    """The first sentence of its help (a test compares them)."""
    is_group: bool = False

    def load(self) -> click.Command:
        module, _, attribute = self.target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return with_common_options(command)


class SuggestingGroup(click.Group):
    """A group that names the commands which a misspelt one may mean."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            import difflib

            close = difflib.get_close_matches(name, self.list_commands(ctx), n=3) or self.below(name)
            meant = f" Did you mean {' or '.join(close)}?" if close else ""
            ctx.fail(f"No such command '{name}'.{meant}")
        return super().resolve_command(ctx, args)

    def below(self, name: str) -> list[str]:
        """Commands of this name in the groups of this one, as they are to be called."""
        return []


class CommandList(SuggestingGroup):
    """A group whose commands are listed in sections and imported one at a time."""

    def __init__(
        self, *arguments: Any, sections: Mapping[str, Mapping[str, LazyCommand]], **parameters: Any
    ) -> None:
        super().__init__(*arguments, **parameters)
        self.sections = sections

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command as click does. Standard output that takes no more, such as a full disk, is an error
        in one line; an option of another tool is answered with ours."""
        # Most of what a command makes, modules and documents, it keeps to its end.
        gc.set_threshold(50_000, 10, 10)
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            from specmux_converters.printing import printable_lines  # needed only for a mistake

            text = error.format_message()
            command = error.ctx.command if error.ctx is not None else self
            if isinstance(error, click.NoSuchOption) and (
                meant := habit(ctx.meta[_WORDS], error.option_name, command)
            ):
                text = f"No such option: {error.option_name}; here: {meant}"
            shown = printable_lines(text)  # what was typed may have been copied from a document
            if shown == error.format_message():
                raise
            refused = UnreadableInput if isinstance(error, UnreadableInput) else click.UsageError
            raise refused(shown, error.ctx) from error
        except OSError as error:
            if error.filename is not None or error.errno not in _UNWRITABLE:
                raise
            forget_standard_output()
            click.echo(f"Error: standard output: {error.strerror}", err=True)
            raise click.exceptions.Exit(UNREADABLE) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in self.sections.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        listed = self._list_names(cmd_name)
        return None if listed is None else listed.load()

    def below(self, name: str) -> list[str]:
        found = []
        for parent, listed in self._every():
            group = listed.load() if listed.is_group else None
            if isinstance(group, click.Group) and name in group.commands:
                found.append(f"{parent} {name}")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(len(name) for name in self.list_commands(ctx))
        for title, section in self.sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), listed.summary.rstrip(".")) for name, listed in section.items()]
                )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        # click's own would import every command for its help.
        commands = [
            CompletionItem(name, help=listed.summary.rstrip("."))
            for name, listed in self._every()
            if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def _list_names(self, name: str) -> LazyCommand | None:
        return next((listed for known, listed in self._every() if known == name), None)

    def _every(self) -> Iterator[tuple[str, LazyCommand]]:
        for section in self.sections.values():
            yield from section.items()


def examples(*lines: Sequence[str] | str) -> str:
    """An epilog of lines that users can copy: a command, or a pair of what it does and the command."""
    shown = []
    for line in lines:
        if isinstance(line, str):
            shown.append(f"  {line}")
        else:
            purpose, command = line
            shown += [f"  # {purpose}", f"  {command}"]
    return "\n".join(["\b", "Examples:", *shown])
