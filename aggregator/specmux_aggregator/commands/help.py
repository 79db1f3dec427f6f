"""``specmux help`` and ``specmux version``, what ``--help`` and ``--version`` say; ``specmux completion``."""

from __future__ import annotations

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import Output, output_option, show
from specmux_aggregator.version import VERSION


@click.command("help", epilog=examples("specmux help", "specmux help cache get"))
@click.argument("command", nargs=-1)
@click.pass_context
def show_help(context: click.Context, command: tuple[str, ...]) -> None:
    """Print the help of a command."""
    found: click.Command = context.find_root().command
    shown = click.Context(found, info_name="specmux")
    for name in command:
        inner = found.get_command(shown, name) if isinstance(found, click.Group) else None
        if inner is None:
            raise click.UsageError(f'no command "{" ".join(command)}"; "specmux --help" lists them')
        found, shown = inner, click.Context(inner, info_name=name, parent=shown)
    click.echo(found.get_help(shown))


@click.command("version", epilog=examples("specmux version"))
@output_option
def print_version(output: Output) -> None:
    """Print the version."""
    show(output, {"version": VERSION}, [f"specmux {VERSION}"])


@click.command(
    epilog=examples(
        ("bash: this shell, or ~/.bashrc for all", "source <(specmux completion bash)"),
        ("zsh", "source <(specmux completion zsh)"),
        ("fish", "specmux completion fish > ~/.config/fish/completions/specmux.fish"),
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, options, and the group-versions that the disk cache has.
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(made(context.find_root().command, {}, "specmux", "_SPECMUX_COMPLETE").source())
